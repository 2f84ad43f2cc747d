import { iso } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { dataOf, upstreamTime } from '../submissions/classify.ts';
import {
  AlertEventType,
  SubmissionEventType,
  TestEventType,
  UpstreamEventType,
} from '../submissions/event-types.ts';
import { ALERT_SEVERITIES, type EventRecord } from './event-body.ts';

/** `maxChars`: UTF-16 units. Never cuts inside a character or its escape sequence. */
export function truncate(
  text: string,
  maxChars: number,
  escaped: (char: string) => string = (char) => char,
): string {
  let whole = '';
  let shortened = '';
  for (const char of text) {
    if (whole.length < maxChars) shortened = whole;
    whole += escaped(char);
    if (whole.length > maxChars) return `${shortened}…`;
  }
  return whole;
}

export function escapeWith(table: Readonly<Record<string, string>>): (char: string) => string {
  return (char) => (Object.hasOwn(table, char) ? (table[char] as string) : char);
}

export type Line = {
  /** null: a value without a label. Never contains external text. */
  label: string | null;
  value: string;
};

const DEFAULT_MAX_CHARS = 300;
/** Replaces line breaks, so that external text cannot start a line of a message. */
const LINE_BREAK = ' ↵ ';

/** One well-formed line: ↵ for line breaks; control characters and bidirectional ones escaped. */
function toSingleLine(text: string, maxChars = DEFAULT_MAX_CHARS): string {
  const lines = text.slice(0, 2 * maxChars).split(/\r\n|[\n\v\f\r\u0085\u2028\u2029]/);
  const line = lines
    .map((each) => each.replaceAll('\t', ' ').trim())
    .filter((each) => each !== '')
    .join(LINE_BREAK);
  const cut = text.length > 2 * maxChars ? `${line}…` : line;
  return truncate(escapeText(cut, maxChars).toWellFormed(), maxChars);
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** Formats a duration with its two largest units: "850 ms", "12 s", "3 min 5 s", "2 d". */
export function durationText(ms: number): string {
  const durationMs = Math.max(0, ms);
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  let restS = Math.floor(durationMs / 1_000);
  const largest = UNITS.findIndex(([, seconds]) => restS >= seconds);
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS.slice(largest, largest + 2)) {
    const amount = Math.floor(restS / seconds);
    restS -= amount * seconds;
    if (amount > 0) parts.push(`${amount} ${unit}`);
  }
  return parts.join(' ');
}

export function submissionPath(submissionId: string): string {
  return `#/submissions/${encoded(submissionId)}`;
}

export function webhookPath(webhookId: string): string {
  return `#/webhooks/${encoded(webhookId)}`;
}

const UPSTREAMS_PATH = '#/pacing';
const ALERTS_PATH = '#/alerts';
const CHANNELS_PATH = '#/channels';

/** The result contains no character that ends a link in a message. */
export function linkTo(publicUrl: string, path: string): string {
  return `${publicUrl.replace(/\/+$/, '').replace(UNSAFE, percentEncoded)}/${path}`;
}

/** End a link in the markup of a chat, although encodeURIComponent or the URL parser keeps them. */
const UNSAFE = /[!'()*|<>"[\]\s]/g;

export function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(UNSAFE, percentEncoded);
}

function percentEncoded(char: string): string {
  return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

export type SubmissionEvent = Extract<EventRecord, { type: SubmissionEventType }>;

const MAX_ERROR_CHARS = 500;
type Data = Record<string, unknown> | null;

function submissionLines({ type, submission, previous }: SubmissionEvent): Line[] {
  const data = dataOf(submission.envelope);
  const before = type === SubmissionEventType.corrected ? dataOf(previous.envelope) : null;
  const { status, error } = submission;
  const lines: [label: string, value: string | null][] = [
    ['Submission', toSingleLine(submission.submissionId)],
    ['Status', previous.status === status ? status : `${status} (was ${previous.status})`],
    ['Upstream', toSingleLine(submission.upstream)],
    ['Upstream state', submission.upstreamState && toSingleLine(submission.upstreamState)],
    ['Error', error && toSingleLine(error, MAX_ERROR_CHARS)],
    [
      'Previous error',
      error === null && previous.error ? toSingleLine(previous.error, MAX_ERROR_CHARS) : null,
    ],
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
  return typeof value === 'string' || typeof value === 'number'
    ? toSingleLine(String(value))
    : null;
}

/** From the creation at the upstream, or else from tracking, to the observed finality. */
function timeToFinality(submission: SubmissionEvent['submission'], data: Data): string | null {
  const { finalizedAt, trackedAt } = submission;
  if (finalizedAt === null) return null;
  const createdAt = upstreamTime(typeof data?.created_at === 'string' ? data.created_at : null);
  return durationText(finalizedAt - Math.min(createdAt ?? trackedAt, finalizedAt));
}

const SEVERITIES = ['good', 'info', 'warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

/**
 * Texts are single-line, printable and short; the channel escapes its markup. `link`: without
 * markup characters; null if the server has no public address.
 */
export type Message = {
  title: string;
  severity: Severity;
  lines: readonly Line[];
  body: string;
  text: string;
  link: string | null;
};

export const LINK_TEXT = 'Open in dawatch';

const LISTED = 10;
const MAX_TITLE_CHARS = 200;

export function toMessage(
  batch: readonly [EventRecord, ...EventRecord[]],
  publicUrl?: string,
): Message {
  const [first] = batch;
  const severity =
    SEVERITIES.findLast((each) => batch.some((event) => severityOf(event) === each)) ?? 'info';
  const title = toSingleLine(
    batch.length === 1 ? titleOf(first) : titleOfMany(batch),
    MAX_TITLE_CHARS,
  );
  const lines = batch.length === 1 ? linesOf(first) : linesOfMany(batch);
  const link = publicUrl === undefined ? null : linkOf(batch, publicUrl);
  const body = [
    ...lines.map(({ label, value }) => (label === null ? value : `${label}: ${value}`)),
    ...(link === null ? [] : ['', link]),
  ].join('\n');
  return {
    title,
    severity,
    lines,
    body,
    text: `${title}\n\n${body}`,
    link,
  };
}

function linkOf(batch: readonly [EventRecord, ...EventRecord[]], publicUrl: string): string {
  const links = new Set(
    batch.map((event) => {
      if ('submission' in event)
        return linkTo(publicUrl, submissionPath(event.submission.submissionId));
      if ('alert' in event) return event.alert.link ?? linkTo(publicUrl, ALERTS_PATH);
      if ('upstream' in event) return linkTo(publicUrl, UPSTREAMS_PATH);
      return linkTo(publicUrl, 'channel' in event ? CHANNELS_PATH : webhookPath(event.webhookId));
    }),
  );
  const [first, ...others] = links;
  if (first !== undefined && others.length === 0) return first;
  const areSubmissions = batch.every((event) => 'submission' in event);
  return linkTo(publicUrl, areSubmissions ? '#/submissions' : ALERTS_PATH);
}

/** `many`: of several submissions. */
const phrase = (severity: Severity, one: string, many = one) => ({ severity, one, many });

const SUBMISSION_TEXTS: Record<SubmissionEventType, ReturnType<typeof phrase>> = {
  [SubmissionEventType.finalized]: phrase('good', 'is finalized', 'are finalized'),
  [SubmissionEventType.recovered]: phrase('good', 'recovered'),
  [SubmissionEventType.cancelled]: phrase('info', 'was cancelled', 'were cancelled'),
  [SubmissionEventType.retracked]: phrase('info', 'is tracked again', 'are tracked again'),
  [SubmissionEventType.failing]: phrase('warning', 'is failing', 'are failing'),
  [SubmissionEventType.stuck]: phrase('warning', 'is stuck', 'are stuck'),
  [SubmissionEventType.unknown]: phrase('warning', 'was never found', 'were never found'),
  [SubmissionEventType.expired]: phrase('warning', 'expired'),
  [SubmissionEventType.corrected]: phrase('warning', 'was corrected', 'were corrected'),
  [SubmissionEventType.contradicted]: phrase(
    'critical',
    'is contradicted by the chain or its data hash',
    'are contradicted by the chain or their data hashes',
  ),
  [SubmissionEventType.failed]: phrase('critical', 'failed'),
  [SubmissionEventType.rejected]: phrase('critical', 'was rejected', 'were rejected'),
};

function severityOf(event: EventRecord): Severity {
  if ('upstream' in event && event.type === UpstreamEventType.up) return 'good';
  if (isOver(event)) return 'info';
  if ('submission' in event) return SUBMISSION_TEXTS[event.type].severity;
  if ('upstream' in event) return 'critical';
  if (!('alert' in event)) return 'info';
  if (event.type === AlertEventType.resolved) return 'good';
  return ALERT_SEVERITIES[event.alert.rule];
}

/** Whether the condition that the event reports had ended before the message was sent. */
export function isOver(event: EventRecord): boolean {
  return 'endedAt' in event && typeof event.endedAt === 'number';
}

function titleOf(event: EventRecord): string {
  const since = isOver(event) ? ', resolved since' : '';
  switch (event.type) {
    case UpstreamEventType.down:
      return `Upstream ${event.upstream} ${isOver(event) ? 'was' : 'is'} down`;
    case UpstreamEventType.up:
      return `Upstream ${event.upstream} is up again`;
    case UpstreamEventType.unauthorized:
      return `Upstream ${event.upstream} ${isOver(event) ? 'rejected' : 'rejects'} the API key`;
    case AlertEventType.raised:
      return `Alert${since}: ${event.alert.summary}`;
    case AlertEventType.resolved:
      return `Resolved: ${event.alert.summary}`;
    case TestEventType.webhook:
      return 'dawatch test event';
    case TestEventType.channel:
      return `Test event for the channel ${event.channel}`;
    default:
      return `Submission ${event.submission.submissionId} ${SUBMISSION_TEXTS[event.type].one}`;
  }
}

function titleOfMany(batch: readonly [EventRecord, ...EventRecord[]]): string {
  const [first] = batch;
  const ids = new Set(
    batch.flatMap((event) => ('submission' in event ? [event.submission.submissionId] : [])),
  );
  return 'submission' in first && ids.size > 1
    ? `${ids.size} submissions ${SUBMISSION_TEXTS[first.type].many}`
    : `${titleOf(first)}, and ${batch.length - 1} more`;
}

function linesOf(event: EventRecord): Line[] {
  const about = 'submission' in event ? submissionLines(event) : otherLines(event);
  return [...about, { label: 'Event', value: event.type }, { label: 'Time', value: iso(event.at) }];
}

function otherLines(event: Exclude<EventRecord, SubmissionEvent>): Line[] {
  if ('upstream' in event)
    return [
      { label: 'Upstream', value: toSingleLine(event.upstream) },
      { label: 'Reason', value: toSingleLine(event.reason) },
      ...(typeof event.endedAt === 'number'
        ? [{ label: 'Lasted', value: timeSpan(event.at, event.endedAt) }]
        : []),
    ];
  if ('channel' in event) return [{ label: 'Channel', value: toSingleLine(event.channel) }];
  if ('webhookId' in event) return [{ label: 'Webhook', value: toSingleLine(event.webhookId) }];
  const { summary, rule, subject, count, since } = event.alert;
  const isEnd = event.type === AlertEventType.resolved;
  const endedAt = isEnd ? event.at : event.endedAt;
  return [
    // The title has it, unless it is too long.
    ...(titleOf(event).length > MAX_TITLE_CHARS
      ? [{ label: isEnd ? 'Resolved' : 'Alert', value: toSingleLine(summary) }]
      : []),
    { label: 'Rule', value: rule },
    { label: 'Subject', value: toSingleLine(subject) },
    ...(count === null || isEnd ? [] : [{ label: 'Count', value: String(count) }]),
    typeof endedAt === 'number'
      ? { label: 'Was firing', value: timeSpan(since, endedAt) }
      : { label: 'Since', value: iso(since) },
  ];
}

function timeSpan(from: number, until: number): string {
  return `${iso(from)} to ${iso(until)}, for ${durationText(until - from)}`;
}

function linesOfMany(batch: readonly [EventRecord, ...EventRecord[]]): Line[] {
  const listed = batch
    .slice(0, LISTED)
    .map((event) => ({ label: null, value: toSingleLine(summaryOf(event)) }));
  const more = batch.length - listed.length;
  const upstreams = new Set(
    batch.flatMap((event) => ('submission' in event ? [event.submission.upstream] : [])),
  );
  const times = batch.map(({ at }) => at);
  return [
    ...listed,
    ...(more > 0 ? [{ label: null, value: `and ${more} more` }] : []),
    ...(upstreams.size > 0
      ? [{ label: 'Upstream', value: toSingleLine([...upstreams].join(', ')) }]
      : []),
    { label: 'Event', value: batch[0].type },
    { label: 'Time', value: `${iso(Math.min(...times))} to ${iso(Math.max(...times))}` },
  ];
}

function summaryOf(event: EventRecord): string {
  if (!('submission' in event)) return titleOf(event);
  const { submissionId, error } = event.submission;
  return error === null ? submissionId : `${submissionId}: ${error}`;
}
