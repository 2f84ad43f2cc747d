import { dataOf, upstreamTime } from '../../domain/envelope.ts';
import type { EventRecord } from '../../domain/notifications/event-body.ts';
import { SubmissionEventType } from '../../domain/notifications/events.ts';
import { durationText } from './duration-text.ts';
import { type Line, toSingleLine } from './line.ts';

export type SubmissionEvent = Extract<EventRecord, { type: SubmissionEventType }>;

const MAX_ERROR_CHARS = 500;
type Data = Record<string, unknown> | null;

/** Returns the lines about the submission of an event; unknown values have no line. */
export function submissionLines({ type, submission, previous }: SubmissionEvent): Line[] {
  const data = dataOf(submission.envelope);
  const before = type === SubmissionEventType.corrected ? dataOf(previous.envelope) : null;
  const { status, error } = submission;
  const lines: [label: string, value: string | null][] = [
    ['Submission', toSingleLine(submission.submissionId)],
    ['Status', previous.status === status ? status : `${status} (was ${previous.status})`],
    ['Upstream', toSingleLine(submission.upstream)],
    ['Upstream state', submission.upstreamState && toSingleLine(submission.upstreamState)],
    ['Error', error && toSingleLine(error, MAX_ERROR_CHARS)],
    ['Previous error', error === null && previous.error ? toSingleLine(previous.error, MAX_ERROR_CHARS) : null],
    ['Block', changed('block_number', data, before)],
    ['Block hash', changed('block_hash', data, before)],
    ['Transaction', changed('tx_hash', data, before)],
    ['Time to finality', timeToFinality(submission, data)],
    ['Metadata', submission.metadata && toSingleLine(JSON.stringify(submission.metadata))],
  ];
  return lines.flatMap(([label, value]) => (value ? [{ label, value }] : []));
}

/** A field of the upstream's data, followed by its previous value if that is known and differs. */
function changed(name: string, data: Data, before: Data): string | null {
  const [now, was] = [field(name, data), field(name, before)];
  return was === null || was === now ? now : `${now ?? 'none'} (was ${was})`;
}

/** parseJson returns numbers that exceed JavaScript's precision as strings. */
function field(name: string, data: Data): string | null {
  const value = data?.[name];
  return typeof value === 'string' || typeof value === 'number' ? toSingleLine(String(value)) : null;
}

/** From the creation at the upstream, or else from the start of tracking, to the observed finality. */
function timeToFinality(submission: SubmissionEvent['submission'], data: Data): string | null {
  const { finalizedAt, trackedAt } = submission;
  if (finalizedAt === null) return null;
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return durationText(finalizedAt - Math.min(createdAt ?? trackedAt, finalizedAt));
}
