import { type Envelope, readEnvelope } from './envelope.ts';
import { isObject, isTextTooDeep, MAX_NESTING, parseJson } from './json.ts';
import { retryAfterMs } from './retry-after.ts';

/** What came back from one request to the upstream, before anyone judged it. */
export type UpstreamResponse =
  | {
      kind: 'response';
      httpStatus: number;
      retryAfter: string | null;
      /** The upstream's Date header: a Retry-After date is read against its clock, not ours. */
      date: string | null;
      body: string;
    }
  | { kind: 'failure'; reason: 'timeout' | 'network' | 'too_large'; detail: string };

/** What one answer says about one submission. */
export type Classification =
  | { kind: 'pending' | 'finalized'; state: string; error: string | null; envelope: string; blockNumber: number | null }
  | { kind: 'error'; state: string; error: string; envelope: string }
  /** `ambiguous`: the upstream says the same when its database fails. */
  | { kind: 'not_found'; error: string; ambiguous: boolean }
  | { kind: 'rejected'; error: string }
  | { kind: 'unauthorized'; error: string }
  | { kind: 'throttled'; error: string; retryAfterMs: number | null }
  | { kind: 'unavailable'; reason: UnavailableReason; error: string; retryAfterMs: number | null };

/** `refused`: a 4xx that is about this one request. */
type UnavailableReason = 'timeout' | 'network' | 'too_large' | 'http_status' | 'refused' | 'malformed';

/** One classified answer. `at` is the moment it arrived, epoch milliseconds. */
export type Observation = { submissionId: string; at: number; durationMs: number } & Classification;

const REFUSED: ReadonlySet<number> = new Set([400, 410, 413, 414, 422]);
const MAX_ERROR_CHARS = 2_000;
const MAX_ANSWER_CHARS = 64 * 1024;

/**
 * Every answer is one verdict; anything that is not surely the service speaking is `unavailable`, which changes no
 * submission. A proxy's 404 or 406 page must not end what the service never judged.
 */
export function classify(submissionId: string, answer: UpstreamResponse): Classification {
  if (answer.kind === 'failure') return unavailable(answer.reason, answer.detail);
  const body = parseJson(answer.body);
  const said = isObject(body) && 'error' in body ? errorText(body.error) : null;
  const wait = retryAfterMs(answer);
  switch (answer.httpStatus) {
    case 200:
      return classifyEnvelope(submissionId, answer.body, body);
    case 401:
    case 403:
      return { kind: 'unauthorized', error: cut(said ?? answer.body) || `HTTP ${answer.httpStatus}` };
    case 404:
      if (said !== null) return { kind: 'not_found', error: said, ambiguous: false };
      break;
    case 406:
      if (said !== null) return { kind: 'rejected', error: said };
      break;
    case 429:
      return { kind: 'throttled', error: cut(said ?? answer.body) || 'HTTP 429', retryAfterMs: wait };
    case 500:
      // The interface knows no code for "not found"; this text is all the upstream gives.
      if (said?.trim().toLowerCase() === 'record not found') return { kind: 'not_found', error: said, ambiguous: true };
      break;
  }
  const reason = REFUSED.has(answer.httpStatus) ? 'refused' : 'http_status';
  return unavailable(reason, `HTTP ${answer.httpStatus} ${said ?? answer.body}`.trim(), wait);
}

function classifyEnvelope(submissionId: string, text: string, body: unknown): Classification {
  if (body === undefined && isTextTooDeep(text))
    return unavailable('malformed', `a response nested more than ${MAX_NESTING} levels deep`);
  const envelope = readEnvelope(body);
  if (!envelope) return unavailable('malformed', `not a submission: ${text.slice(0, 200) || '(empty body)'}`);
  if (envelope.state === 'ERROR' && envelope.data === undefined)
    return unavailable('malformed', `a failure with HTTP 200: ${errorText(envelope.error) ?? ''}`);
  const other = idsIn(body).find((id) => isAnother(submissionId, id));
  if (other !== undefined) return unavailable('malformed', `an answer about another submission: ${other}`);

  const error = errorText(envelope.error);
  const kept = text.length <= MAX_ANSWER_CHARS ? text : shorten({ ...envelope, error });
  const state = envelope.state;
  if (state === 'Error') return { kind: 'error', state, error: error ?? 'no reason given', envelope: kept };
  // Finalized is believed only with the block it is in, and without an error beside it.
  const believed = state === 'Finalized' && error === null && !!envelope.data?.block_hash?.trim();
  const blockNumber = envelope.data?.block_number ?? null;
  return { kind: believed ? 'finalized' : 'pending', state, error, envelope: kept, blockNumber };
}

/** Every id that an answer gives its submission: some versions repeat it in a raw row beside `data`. */
function idsIn(body: unknown): unknown[] {
  const { id, data, submission } = isObject(body) ? body : {};
  const row = isObject(submission) ? submission : {};
  return [id, isObject(data) ? data.submission_id : undefined, row.id, row.submission_id];
}

/** Where both are UUIDs, in whatever spelling; what else an upstream calls its rows is its own affair. */
function isAnother(asked: string, answered: unknown): boolean {
  if (answered === undefined || answered === asked) return false;
  const [one, two] = [uuidDigits(asked), uuidDigits(answered)];
  return one !== undefined && two !== undefined && one !== two;
}

function uuidDigits(text: unknown): string | undefined {
  if (typeof text !== 'string') return undefined;
  const digits = text.toLowerCase().replace(/^urn:uuid:|[{}-]/g, '');
  return /^[0-9a-f]{32}$/.test(digits) ? digits : undefined;
}

function shorten(envelope: Envelope): string {
  return JSON.stringify(envelope, (_key, value) => (typeof value === 'string' ? cut(value) : value));
}

/** The `error` of an answer as text; null where it says there is none. */
function errorText(error: unknown): string | null {
  if (error === null || error === undefined || error === '') return null;
  return cut(typeof error === 'string' ? error : JSON.stringify(error));
}

/** Half a character, sent or left by the cut, would come back from the ledger as another one. */
function cut(text: string): string {
  const short = text.length > MAX_ERROR_CHARS ? `${text.slice(0, MAX_ERROR_CHARS)}…` : text;
  return short.toWellFormed();
}

function unavailable(reason: UnavailableReason, error: string, retryAfterMs: number | null = null): Classification {
  return { kind: 'unavailable', reason, error: cut(error), retryAfterMs };
}
