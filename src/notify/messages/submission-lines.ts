import { dataOf, upstreamTime } from '../../domain/envelope.ts';
import type { EventRecord } from '../../domain/notifications/event-body.ts';
import { SubmissionEventType } from '../../domain/notifications/events.ts';
import { durationText } from './duration-text.ts';
import { type Line, toSingleLine } from './line.ts';

export type SubmissionEvent = Extract<EventRecord, { type: SubmissionEventType }>;

const MAX_ERROR_CHARS = 500;
type Data = Record<string, unknown> | null;

/** What one event tells of its submission; what isn't known has no line. */
export function submissionLines({ type, submission, previous }: SubmissionEvent): Line[] {
  const data = dataOf(submission.envelope);
  const before = type === SubmissionEventType.corrected ? dataOf(previous.envelope) : null;
  const { status, error } = submission;
  const lines: [label: string, value: string | null][] = [
    ['Submission', toSingleLine(submission.submissionId)],
    ['Status', previous.status === status ? status : `${status} (was ${previous.status})`],
    ['Upstream', toSingleLine(submission.upstream)],
    ["Upstream's state", submission.upstreamState && toSingleLine(submission.upstreamState)],
    ['Error', error && toSingleLine(error, MAX_ERROR_CHARS)],
    ['Error before', error === null && previous.error ? toSingleLine(previous.error, MAX_ERROR_CHARS) : null],
    ['Block', changed('block_number', data, before)],
    ['Block hash', changed('block_hash', data, before)],
    ['Transaction', changed('tx_hash', data, before)],
    ['Time to finality', timeToFinality(submission, data)],
    ['Metadata', submission.metadata && toSingleLine(JSON.stringify(submission.metadata))],
  ];
  return lines.flatMap(([label, value]) => (value ? [{ label, value }] : []));
}

/** A field of the upstream's data; with what it was before, where that is told and differs. */
function changed(name: string, data: Data, before: Data): string | null {
  const [now, was] = [field(name, data), field(name, before)];
  return was === null || was === now ? now : `${now ?? 'none'} (was ${was})`;
}

/** A number too large for JSON came as the string of its digits. */
function field(name: string, data: Data): string | null {
  const value = data?.[name];
  return typeof value === 'string' || typeof value === 'number' ? toSingleLine(String(value)) : null;
}

/** From when the upstream took it, or we first heard of it, to when we saw it final. */
function timeToFinality(submission: SubmissionEvent['submission'], data: Data): string | null {
  const { finalizedAt, trackedAt } = submission;
  if (finalizedAt === null) return null;
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return durationText(finalizedAt - Math.min(createdAt ?? trackedAt, finalizedAt));
}
