import { typeReason } from '../lib/explain-issue.ts';
import { type HttpResult, retryAfterMs } from '../lib/http-call.ts';
import { DamagedRowError, isObject, isTextTooDeep, MAX_NESTING, parseJson } from '../lib/json.ts';
import type { ChainResult } from './submission.ts';

type HttpResponse = Extract<HttpResult, { kind: 'response' }>;

export type Classification =
  | {
      kind: 'pending' | 'finalized';
      state: string;
      error: string | null;
      envelope: string;
      blockNumber: number | null;
      /** Absent: it was not verified. */
      chain?: ChainResult;
      /** A required confirmation by the chain is missing. */
      isHeld?: boolean;
      /** When the chain finalized its block, epoch milliseconds. Absent: no node announced it. */
      finalityAt?: number;
    }
  | { kind: 'error'; state: string; error: string; envelope: string }
  /** `ambiguous`: the upstream sends the same response when its database fails. */
  | { kind: 'not_found'; error: string; ambiguous: boolean }
  | { kind: 'rejected'; error: string }
  | { kind: 'unauthorized'; error: string }
  | { kind: 'throttled'; error: string; retryAfterMs: number | null }
  | { kind: 'unavailable'; reason: UnavailableReason; error: string; retryAfterMs: number | null };

/** `refused`: a 4xx that concerns only this request. */
export const UNAVAILABLE_REASONS = [
  'timeout',
  'network',
  'too_large',
  'http_status',
  'refused',
  'malformed',
] as const;
type UnavailableReason = (typeof UNAVAILABLE_REASONS)[number];

/** The result of a poll. `at`: arrival, epoch ms. `worker`: who sent it; absent: the server. */
export type Observation = {
  submissionId: string;
  at: number;
  durationMs: number;
  worker?: string;
} & Classification;

/** A proxy may send these to every request, but 414 only for a long id. */
const REFUSED: ReadonlySet<number> = new Set([400, 410, 413, 414, 422]);
const MAX_ERROR_CHARS = 2_000;
const MAX_ENVELOPE_CHARS = 64 * 1024;

/**
 * A response that may not be the service's own is `unavailable`: a proxy's 404 must not end a
 * submission.
 */
export function classify(submissionId: string, response: HttpResult): Classification {
  if (response.kind === 'failure') return unavailable(response.reason, response.detail);
  const body = parseJson(response.body);
  const text = response.binary ?? response.body;
  const error = isObject(body) && 'error' in body ? errorText(body.error) : null;
  const waitMs = retryAfterMs(response);
  switch (response.httpStatus) {
    case 200:
    // A proxy has changed the response, for example its headers.
    case 203:
      return classifyEnvelope(submissionId, response, body);
    case 401:
    case 403: {
      const failure = failureText(response.httpStatus, error ?? text);
      return isKeyRefusal(response.httpStatus, response.body)
        ? { kind: 'unauthorized', error: failure }
        : unavailable('http_status', `a proxy or firewall refused the request: ${failure}`, waitMs);
    }
    case 404:
      if (error !== null) return { kind: 'not_found', error, ambiguous: false };
      break;
    case 406:
      if (error !== null) return { kind: 'rejected', error };
      break;
    case 429:
      return {
        kind: 'throttled',
        error: failureText(response.httpStatus, error ?? text),
        retryAfterMs: waitMs,
      };
    case 500:
      // The interface has no status for "not found": only this text indicates it.
      if (error?.trim().toLowerCase() === 'record not found')
        return { kind: 'not_found', error, ambiguous: true };
      break;
  }
  const isRefused =
    response.httpStatus === 414 || (REFUSED.has(response.httpStatus) && !isPage(response.body));
  const reason = isRefused ? 'refused' : 'http_status';
  return unavailable(reason, failureText(response.httpStatus, error ?? text), waitMs);
}

function classifyEnvelope(
  submissionId: string,
  response: HttpResponse,
  body: unknown,
): Classification {
  const { httpStatus, body: text } = response;
  if (body === undefined && isTextTooDeep(text))
    return unavailable('malformed', `a response nested more than ${MAX_NESTING} levels deep`);
  if (!isObject(body) || !isState(body.state))
    return unavailable('malformed', `HTTP ${httpStatus}, ${notSubmission(response, body)}`);
  const { data } = body;
  const fields = isObject(data) ? data : {};
  if (body.state === 'ERROR' && data !== null && !isObject(data))
    return unavailable(
      'malformed',
      `HTTP ${httpStatus} with a failure: ${errorText(body.error) ?? ''}`,
    );
  const other = otherIdIn(body, submissionId);
  if (other !== undefined)
    return unavailable('malformed', `a response about another submission: ${other}`);
  const hash = malformedHash(fields);
  if (hash !== undefined)
    return unavailable('malformed', `HTTP ${httpStatus} with a ${hash} that is not hexadecimal`);

  const state = body.state.toWellFormed();
  const name = state.toLowerCase();
  const { block_hash, block_number } = fields;
  const error =
    errorText(body.error) ??
    wrongType('data', 'object', data, isObject(data)) ??
    (name === 'finalized'
      ? wrongType('data.block_hash', 'string', block_hash, typeof block_hash === 'string')
      : null);
  const kept = text.length <= MAX_ENVELOPE_CHARS ? text : shorten(body, error);
  if (name === 'error')
    return { kind: 'error', state, error: error ?? 'no reason given', envelope: kept };
  // Finalized is accepted only with a block and without an error.
  const isFinal = name === 'finalized' && error === null && !!String(block_hash ?? '').trim();
  const blockNumber = integerFrom(block_number);
  return { kind: isFinal ? 'finalized' : 'pending', state, error, envelope: kept, blockNumber };
}

/** The case of its letters has no meaning. An unknown state means "not final". */
function isState(state: unknown): state is string {
  return typeof state === 'string' && state !== '' && state.length <= 200;
}

/** Returns why a value that decides cannot be read; null: it can, or it is absent. */
function wrongType(name: string, type: string, value: unknown, isUsable: boolean): string | null {
  const isAbsent = value === null || value === undefined;
  return isAbsent || isUsable ? null : `${name} ${typeReason(type, value)}`;
}

/** Returns a whole number, also one in decimal digits; null: none that JavaScript represents. */
export function integerFrom(value: unknown): number | null {
  const isDigits = typeof value === 'string' && /^\d+$/.test(value);
  const number = isDigits ? Number(value) : value;
  return Number.isSafeInteger(number) && (number as number) >= 0 ? (number as number) : null;
}

/**
 * Whether a 401 or 403 is the service's own: an object with `error`, or with 401 also a text.
 * Firewalls send web pages, nothing, or texts with 403.
 */
function isKeyRefusal(httpStatus: number, text: string): boolean {
  const body = parseJson(text);
  if (isObject(body)) return 'error' in body && errorText(body.error) !== null;
  return httpStatus === 401 && !isPage(text);
}

function isPage(text: string): boolean {
  return /^\s*(?:<|$)/.test(text);
}

function notSubmission({ body: text, binary }: HttpResponse, body: unknown): string {
  if (binary !== undefined) return binary;
  if (text === '') return 'an empty body';
  return `${body === undefined ? 'not JSON' : 'not a submission'}: ${text.slice(0, 200)}`;
}

function failureText(httpStatus: number, text: string): string {
  return truncate(`HTTP ${httpStatus} ${text}`.trim());
}

/**
 * Returns an id in a response that is not the polled one. Some upstream versions repeat it in a raw
 * row beside `data`, whose own id may be of another form.
 */
function otherIdIn(body: unknown, polled: string): string | undefined {
  const { id, data, submission } = isObject(body) ? body : {};
  const row = isObject(submission) ? submission : {};
  const ids = [id, isObject(data) ? data.submission_id : null, row.submission_id];
  const expected = comparableId(polled);
  if ([expected, comparableId(row.id)].every((one) => UUID_DIGITS.test(one))) ids.push(row.id);
  return ids.map((one) => comparableId(one ?? polled)).find((one) => one !== expected);
}

const UUID_DIGITS = /^[0-9a-f]{32}$/;

/** The digits of a UUID in any spelling; any other value as text. */
function comparableId(id: unknown): string {
  const text = typeof id === 'string' ? id : (JSON.stringify(id) ?? '');
  const digits = text.toLowerCase().replace(/^urn:uuid:|[{}-]/g, '');
  return UUID_DIGITS.test(digits) ? digits : text;
}

/** Returns a response with the fields of the interface only, and with short texts. */
function shorten({ id, state, data }: Record<string, unknown>, error: string | null): string {
  const fields = isObject(data) ? DATA_FIELDS.map((name) => [name, data[name]]) : null;
  const known = { id, state, error, data: fields && Object.fromEntries(fields) };
  return JSON.stringify(known, (key, value) => {
    if (typeof value === 'string') return truncate(value);
    return typeof value === 'object' && key !== '' && key !== 'data' ? null : value;
  });
}

function errorText(error: unknown): string | null {
  if (error === null || error === undefined || error === '') return null;
  return truncate(typeof error === 'string' ? error : JSON.stringify(error));
}

/** Makes text well-formed: the ledger would change half a surrogate pair. */
function truncate(text: string): string {
  const short = text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)}…` : text;
  return short.toWellFormed();
}

function unavailable(
  reason: UnavailableReason,
  error: string,
  retryAfterMs: number | null = null,
): Classification {
  return { kind: 'unavailable', reason, error: truncate(error), retryAfterMs };
}

/** Fields of the upstream's `data` (section 2 of its interface). */
const DATA_FIELDS = [
  'amount_data',
  'block_hash',
  'block_number',
  'created_at',
  'data_billed',
  'data_hash',
  'fees',
  'tx_hash',
  'tx_index',
  'user_id',
];

/** Returns the unchanged `data` of an envelope; null if it has none. */
export function dataOf(envelope: string | null): Record<string, unknown> | null {
  const body = envelope === null ? null : parseJson(envelope);
  return isObject(body) && isObject(body.data) ? body.data : null;
}

/** As `dataOf`, of a stored envelope. Throws DamagedRowError, also for a malformed hash. */
export function storedData(envelope: string | null, row: string): Record<string, unknown> | null {
  const data = dataOf(envelope);
  const isDamaged = data
    ? malformedHash(data) !== undefined
    : envelope !== null && parseJson(envelope) === undefined;
  if (isDamaged) throw new DamagedRowError(row, 'response');
  return data;
}

/** Returns the name of a hash that is not hexadecimal; undefined: there is none. */
function malformedHash(data: Record<string, unknown>): string | undefined {
  return ['block_hash', 'tx_hash', 'data_hash'].find((name) => {
    const hash = data[name];
    return typeof hash === 'string' && !/^(?:0x)?[0-9a-f]*$/i.test(hash.trim());
  });
}

/** Whether two envelopes have equal `data`. Fields outside the interface are ignored. */
export function sameData(a: string | null, b: string | null): boolean {
  if (a === b) return true;
  return fingerprint(a) === fingerprint(b);
}

function fingerprint(envelope: string | null): string {
  const data = dataOf(envelope);
  if (data === null) return '';
  const fields = DATA_FIELDS.map((name) => {
    const value = data[name] ?? null;
    if (name === 'created_at' && typeof value === 'string') return upstreamTime(value) ?? value;
    return typeof value === 'number' ? String(value) : value;
  });
  return JSON.stringify(fields);
}

/** Returns epoch milliseconds; null if invalid. Without a zone it is UTC. */
export function upstreamTime(text: string | null | undefined): number | null {
  if (!text) return null;
  const ms = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`);
  return Number.isNaN(ms) ? null : ms;
}
