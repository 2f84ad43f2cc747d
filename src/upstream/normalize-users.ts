import { z } from 'zod';
import { isObject, isTextTooDeep, parseJson } from '../domain/json.ts';
/** A user of the upstream with all fields unchanged. */
export type UserRecord = Record<string, unknown>;

/** The content of a response with HTTP 200. */
export type NormalizedResponse<T> =
  | { kind: 'found'; value: T }
  | { kind: 'not_found' }
  | { kind: 'malformed'; detail: string };

/** The five fields of the interface. An integer too large for a JavaScript number is the string of its digits; null: no value. */
const recordSchema = z.looseObject({
  id: z.string().nullish(),
  name: z.string().nullish(),
  email: z.string().nullish(),
  app_id: z.union([z.int(), z.string().regex(/^-?\d{16,}$/)]).nullish(),
  assigned_wallet: z.string().nullish(),
});
/** Two are known to occur. */
const MAX_WRAPPINGS = 3;
const FIELDS = Object.keys(recordSchema.shape);

/** Reads one user: the bare record, or wrapped in `data`. */
export function normalizeUser(text: string): NormalizedResponse<UserRecord> {
  const content = read(text);
  if (content.kind !== 'found') return content;
  return toRecord(content.value);
}

/** Reads a list of users: an array, bare or wrapped in `data`, `results` or `Ok`. One invalid record makes it malformed. */
export function normalizeUsers(text: string, limit: number): NormalizedResponse<UserRecord[]> {
  const content = read(text);
  // "Not found" for a list means that the upstream's database failed.
  if (content.kind === 'not_found') return malformed('a failure with HTTP 200');
  if (content.kind === 'malformed') return content;
  if (!Array.isArray(content.value)) return malformed('not a list of users');
  const users: UserRecord[] = [];
  for (const item of content.value.slice(0, limit)) {
    const record = toRecord(item);
    if (record.kind !== 'found') return malformed('a record in the list is not a user');
    users.push(record.value);
  }
  return { kind: 'found', value: users };
}

function read(text: string): NormalizedResponse<unknown> {
  return isTextTooDeep(text) ? malformed('nested too deeply') : unwrap(parseJson(text));
}

/** Removes the wrappings {"state","message","data"}, {"results"} and {"data"}, and within them {"Ok"} or {"Err"}. */
function unwrap(body: unknown, wrappingsLeft = MAX_WRAPPINGS): NormalizedResponse<unknown> {
  if (body === undefined) return malformed('not JSON');
  if (wrappingsLeft < 0) return malformed('nested in too many wrappings');
  if (!isObject(body)) return { kind: 'found', value: body };
  if ('Err' in body) return malformed('a failure with HTTP 200');
  if ('Ok' in body && !isRecord(body)) return unwrap(body.Ok, wrappingsLeft - 1);
  const { state, data, results, error } = body;
  if (isRecord(body) && !(typeof state === 'string' && isObject(data))) return { kind: 'found', value: body };
  if (isNotFound(body)) return { kind: 'not_found' };
  if (state === 'ERROR' || (error !== undefined && error !== null)) return malformed('a failure with HTTP 200');
  const content = data ?? results;
  return content === undefined || content === null
    ? malformed('no content that the interface defines')
    : unwrap(content, wrappingsLeft - 1);
}

/** The interface has no status for "not found": only this text indicates it, with HTTP 500. */
export function isNotFound(body: unknown): boolean {
  return isObject(body) && typeof body.error === 'string' && body.error.trim().toLowerCase() === 'record not found';
}

function isRecord(body: Record<string, unknown>): boolean {
  return FIELDS.some((field) => Object.hasOwn(body, field));
}

function toRecord(value: unknown): NormalizedResponse<UserRecord> {
  if (!isObject(value) || !isRecord(value)) return malformed('not a user');
  const parsed = recordSchema.safeParse(value);
  if (!parsed.success) return malformed(`a user whose ${parsed.error.issues[0]?.path.join('.')} is of another type`);
  return { kind: 'found', value };
}

function malformed(detail: string): { kind: 'malformed'; detail: string } {
  return { kind: 'malformed', detail };
}
