import type { TrackedSubmissions, TrackItem, TrackRequest } from './api.ts';
import { ApiError } from './errors.ts';
import type { SendRequest } from './request.ts';

/** Options of all submissions of a request. */
export type TrackOptions = Omit<TrackRequest, 'submission_id' | 'submission_ids' | 'submissions'>;

/** Proxies such as nginx refuse larger bodies by default: they allow 1 MB. */
const MAX_BODY_BYTES = 900_000;
/** The most that the server accepts in a request. */
const MAX_ITEMS = 1_000;

/** Divides items, as `itemOf` sends them, into requests of limited size; at least one request. */
export function partsOf<Item>(
  items: readonly Item[],
  { options, itemOf }: { options: TrackOptions; itemOf: (item: Item) => unknown },
): Item[][] {
  const encoder = new TextEncoder();
  const bytesOf = (value: unknown) => encoder.encode(JSON.stringify(value)).length + 1;
  const emptyBytes = bytesOf({ submission_ids: [], ...options });
  let part: Item[] = [];
  let bytes = emptyBytes;
  const parts = [part];
  for (const item of items) {
    const itemBytes = bytesOf(itemOf(item));
    if (part.length > 0 && (part.length === MAX_ITEMS || bytes + itemBytes > MAX_BODY_BYTES)) {
      part = [];
      bytes = emptyBytes;
      parts.push(part);
    }
    part.push(item);
    bytes += itemBytes;
  }
  return parts;
}

/** Tracks submissions in as many requests as needed, and returns their results as one. */
export async function track(
  send: SendRequest,
  submissions: readonly (string | TrackItem)[],
  options: TrackOptions,
): Promise<TrackedSubmissions> {
  const isPlain = submissions.every((one) => typeof one === 'string');
  const items: readonly (string | TrackItem)[] = isPlain
    ? submissions
    : submissions.map((one) => (typeof one === 'string' ? { submission_id: one } : one));
  const name = isPlain ? 'submission_ids' : 'submissions';
  const total: TrackedSubmissions = {
    accepted: 0,
    already_tracked: 0,
    already_final: 0,
    retracked: 0,
    kept_options: [],
    submissions: [],
  };
  let sent = 0;
  for (const part of partsOf(items, { options, itemOf: (item) => item })) {
    const body = { [name]: part, ...options };
    const tracked = await send<TrackedSubmissions>('POST', '/v1/submissions', body).catch(
      (error: unknown) => {
        throw counted(error, sent);
      },
    );
    for (const count of ['accepted', 'already_tracked', 'already_final', 'retracked'] as const)
      total[count] += tracked[count];
    total.kept_options = [...new Set([...total.kept_options, ...(tracked.kept_options ?? [])])];
    total.submissions.push(...tracked.submissions);
    sent += part.length;
  }
  return total;
}

/** Counts the items that an error names from the first request on. */
function counted(error: unknown, sent: number): unknown {
  if (!(error instanceof ApiError) || sent === 0) return error;
  const shifted = (text: string) =>
    text.replace(
      /(\/(?:submissions|submission_ids)\/)(\d+)/g,
      (_all, path: string, index: string) => `${path}${Number(index) + sent}`,
    );
  const errors = error.errors.map((one) => ({ ...one, pointer: shifted(one.pointer) }));
  return Object.assign(error, { message: shifted(error.message), errors });
}
