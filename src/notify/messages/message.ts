import { AlertRule } from '../../domain/notifications/alert.ts';
import type { EventRecord } from '../../domain/notifications/event-body.ts';
import {
  AlertEventType,
  SubmissionEventType,
  TEST_EVENT_TYPE,
  UpstreamEventType,
} from '../../domain/notifications/events.ts';
import { iso } from '../../domain/timestamps.ts';
import { durationText } from './duration-text.ts';
import { type Line, toSingleLine } from './line.ts';
import { type SubmissionEvent, submissionLines } from './submission-lines.ts';

/** From the least to the most urgent. */
const SEVERITIES = ['good', 'info', 'warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What people read. It is one line each, printable and short; the markup of where it goes is not escaped yet. */
export type Message = { title: string; severity: Severity; lines: readonly Line[]; text: string };

/** Of many events this many are listed. */
const LISTED = 10;
const MAX_TITLE_CHARS = 200;

/** One event or many, which are of one type as a rule. */
export function toMessage(batch: readonly [EventRecord, ...EventRecord[]]): Message {
  const [first] = batch;
  const severity = SEVERITIES.findLast((each) => batch.some((event) => severityOf(event) === each)) ?? 'info';
  const title = toSingleLine(batch.length === 1 ? titleOf(first) : titleOfMany(batch), MAX_TITLE_CHARS);
  const lines = batch.length === 1 ? linesOf(first) : linesOfMany(batch);
  const body = lines.map(({ label, value }) => (label === null ? value : `${label}: ${value}`));
  return { title, severity, lines, text: [title, '', ...body].join('\n') };
}

/** What is said of one submission, and of many. */
const SAID: Record<SubmissionEventType, { one: string; many: string; severity: Severity }> = {
  [SubmissionEventType.finalized]: { one: 'is finalized', many: 'are finalized', severity: 'good' },
  [SubmissionEventType.recovered]: { one: 'recovered', many: 'recovered', severity: 'good' },
  [SubmissionEventType.cancelled]: { one: 'was cancelled', many: 'were cancelled', severity: 'info' },
  [SubmissionEventType.failing]: { one: 'is failing', many: 'are failing', severity: 'warning' },
  [SubmissionEventType.stuck]: { one: 'is stuck', many: 'are stuck', severity: 'warning' },
  [SubmissionEventType.unknown]: { one: 'was never found', many: 'were never found', severity: 'warning' },
  [SubmissionEventType.expired]: { one: 'expired', many: 'expired', severity: 'warning' },
  [SubmissionEventType.corrected]: { one: 'was corrected', many: 'were corrected', severity: 'warning' },
  [SubmissionEventType.failed]: { one: 'failed', many: 'failed', severity: 'critical' },
  [SubmissionEventType.rejected]: { one: 'was rejected', many: 'were rejected', severity: 'critical' },
};

const URGENT_RULES: ReadonlySet<AlertRule> = new Set([AlertRule.upstreamDown, AlertRule.credentialsRefused]);

function severityOf(event: EventRecord): Severity {
  if ('submission' in event) return SAID[event.type].severity;
  if ('upstream' in event) return event.type === UpstreamEventType.up ? 'good' : 'critical';
  if (!('alert' in event)) return 'info';
  if (event.type === AlertEventType.resolved) return 'good';
  return URGENT_RULES.has(event.alert.rule) ? 'critical' : 'warning';
}

function titleOf(event: EventRecord): string {
  switch (event.type) {
    case UpstreamEventType.down:
      return `Upstream ${event.upstream} is down`;
    case UpstreamEventType.up:
      return `Upstream ${event.upstream} is up again`;
    case UpstreamEventType.unauthorized:
      return `Upstream ${event.upstream} refuses our key`;
    case AlertEventType.raised:
      return `Alert: ${event.alert.summary}`;
    case AlertEventType.reminder:
      return `Still: ${event.alert.summary}`;
    case AlertEventType.resolved:
      return `Resolved: ${event.alert.summary}`;
    case TEST_EVENT_TYPE:
      return 'A test of dawatch';
    default:
      return `Submission ${event.submission.submissionId} ${SAID[event.type].one}`;
  }
}

function titleOfMany(batch: readonly EventRecord[]): string {
  const types = new Set(batch.map(({ type }) => type));
  const [first] = batch;
  if (types.size > 1 || first === undefined) return `${batch.length} events`;
  if ('submission' in first) {
    const ids = new Set(batch.map((event) => ('submission' in event ? event.submission.submissionId : '')));
    if (ids.size > 1) return `${ids.size} submissions ${SAID[first.type].many}`;
    return `${titleOf(first)} (${batch.length} times)`;
  }
  const names = new Set(batch.map((event) => ('upstream' in event ? event.upstream : event.id)));
  if (names.size === 1) return `${titleOf(first)} (${batch.length} times)`;
  return `${names.size} ${MANY[first.type]}`;
}

/** Several of what is not about submissions. */
const MANY: Record<UpstreamEventType | AlertEventType | typeof TEST_EVENT_TYPE, string> = {
  [UpstreamEventType.down]: 'upstreams are down',
  [UpstreamEventType.up]: 'upstreams are up again',
  [UpstreamEventType.unauthorized]: 'upstreams refuse our key',
  [AlertEventType.raised]: 'new alerts',
  [AlertEventType.reminder]: 'alerts still hold',
  [AlertEventType.resolved]: 'alerts are resolved',
  [TEST_EVENT_TYPE]: 'tests of dawatch',
};

function linesOf(event: EventRecord): Line[] {
  const about = 'submission' in event ? submissionLines(event) : otherLines(event);
  return [...about, { label: 'Event', value: event.type }, { label: 'Time', value: iso(event.at) }];
}

function otherLines(event: Exclude<EventRecord, SubmissionEvent>): Line[] {
  if ('upstream' in event) return [{ label: 'Upstream', value: toSingleLine(event.upstream) }];
  if ('webhookId' in event) return [{ label: 'Webhook', value: toSingleLine(event.webhookId) }];
  const { summary, rule, subject, count, since } = event.alert;
  const held = durationText(event.at - since);
  const isOver = event.type === AlertEventType.resolved;
  return [
    { label: isOver ? 'Now' : 'Alert', value: toSingleLine(summary) },
    { label: 'Rule', value: rule },
    { label: 'About', value: toSingleLine(subject) },
    ...(count === null || isOver ? [] : [{ label: 'Count', value: String(count) }]),
    isOver
      ? { label: 'Lasted', value: `${held}, since ${iso(since)}` }
      : { label: 'Since', value: event.type === AlertEventType.reminder ? `${iso(since)}, for ${held}` : iso(since) },
  ];
}

/** The first of them, and how many more there are; between the first and the last one, which upstreams and when. */
function linesOfMany(batch: readonly EventRecord[]): Line[] {
  const listed = batch.slice(0, LISTED).map((event) => ({ label: null, value: toSingleLine(inBrief(event)) }));
  const more = batch.length - listed.length;
  const upstreams = new Set(batch.flatMap((event) => ('submission' in event ? [event.submission.upstream] : [])));
  const times = batch.map(({ at }) => at);
  return [
    ...listed,
    ...(more > 0 ? [{ label: null, value: `and ${more} more` }] : []),
    ...(upstreams.size > 0 ? [{ label: 'Upstream', value: toSingleLine([...upstreams].join(', ')) }] : []),
    { label: 'Event', value: [...new Set(batch.map(({ type }) => type))].join(', ') },
    { label: 'Time', value: `${iso(Math.min(...times))} to ${iso(Math.max(...times))}` },
  ];
}

function inBrief(event: EventRecord): string {
  if (!('submission' in event)) return titleOf(event);
  const { submissionId, error } = event.submission;
  return error === null ? submissionId : `${submissionId}: ${error}`;
}
