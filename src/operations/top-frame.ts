import { type Colour, colourOf, type Paint } from '../cli/colors.ts';
import type { Alert, Overview } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

export type View = {
  address: string;
  /** The latest overview; undefined before the first. */
  overview: Overview | undefined;
  /** Firing alerts, newest first. */
  alerts: readonly Alert[];
  /** Why the overview is outdated; undefined if it is current. */
  error: string | undefined;
};

type Span = readonly [text: string, colour?: Colour | undefined];
type Line = readonly Span[];

const LABEL_WIDTH = 13;
const GAP = '   ';
/** Alerts that are shown with their texts. */
const MAX_ALERTS = 3;
const BARS = '▁▂▃▄▅▆▇█';
/** Display texts: "closed", the state of a circuit breaker, would be misread as a fault. */
const UPSTREAM_STATES: Record<string, Span | undefined> = {
  closed: ['up', 'green'],
  down: ['down', 'red'],
  unauthorized: ['refuses the key', 'red'],
};

/** Returns the lines of one screen, truncated to `columns` and `rows`. */
export function frame(
  { address, overview, alerts, error }: View,
  columns: number,
  rows: number,
  paint: Paint,
): string[] {
  const head: Line[] = [
    [
      ['dawatch', 'bold'],
      [`${GAP}${escapeText(address)}`],
      [`${GAP}${escapeText(overview?.at ?? '')}`, 'gray'],
    ],
    error === undefined ? [] : [[`disconnected: ${escapeText(error)}; retrying`, 'red']],
  ];
  const lines = [
    ...head,
    ...(overview ? [...alertLines(alerts, overview.at), [], ...body(overview, columns)] : []),
  ];
  return lines.slice(0, rows).map((line) => toText(line, columns, paint));
}

function body(overview: Overview, columns: number): Line[] {
  const { submissions, per_minute, last_hour, upstreams, oldest_open, readers, workers } = overview;
  const lag = last_hour.detection_lag_s;
  const finalized = per_minute.map((minute) => minute.finalized);
  return [
    ...wrapped('submissions', Object.entries(submissions).map(toCount), columns),
    [],
    labelled('finalized', [
      `${whole(finalized.at(-2) ?? 0)} in the last minute, ${whole(last_hour.finalized)} in the last hour`,
    ]),
    labelled('', [sparkline(finalized, columns - LABEL_WIDTH), 'green']),
    labelled('to finality', [spread(last_hour.time_to_finality_s)]),
    labelled('lag', [lag === null ? 'not known' : `${spread(lag)} (upper bound)`]),
    labelled('requests', [requestsText(last_hour)]),
    [],
    ...rowsOf('upstreams', upstreams.map(toUpstream)),
    labelled('deliveries', ...toDeliveries(overview)),
    labelled('feed', [
      `${counted(readers, 'reader')}${workers === null ? '' : `${GAP}${counted(workers, 'worker')}`}`,
    ]),
    [],
    ...rowsOf('oldest open', oldest_open.map(toOpen)),
  ];
}

/**
 * Returns the numbers of alerts, and the texts of the newest alerts that are neither acknowledged
 * nor muted.
 */
function alertLines(alerts: readonly Alert[], at: string): Line[] {
  const unhandled = alerts.filter(
    ({ acknowledged, muted_until }) => !acknowledged && muted_until === null,
  );
  const acknowledged = alerts.filter((alert) => alert.acknowledged).length;
  const muted = alerts.length - unhandled.length - acknowledged;
  const counts: Span[] = [
    unhandled.length === 0
      ? ['none firing', 'green']
      : [`${whole(unhandled.length)} firing`, 'red'],
    ...(acknowledged === 0
      ? []
      : [[`${GAP}${whole(acknowledged)} acknowledged`, 'yellow'] as const]),
    ...(muted === 0 ? [] : [[`${GAP}${whole(muted)} muted`, 'gray'] as const]),
  ];
  const newest = unhandled.slice(0, MAX_ALERTS).map(({ since, summary }): Line => {
    const ageS = (Date.parse(at) - Date.parse(since)) / 1_000;
    return labelled('', [`${seconds(ageS)}${GAP}${escapeText(summary)}`]);
  });
  return [labelled('alerts', ...counts), ...newest];
}

function toCount([status, count]: [string, number]): Span {
  return [`${escapeText(status)} ${whole(count)}`, count > 0 ? colourOf(status) : 'gray'];
}

function toUpstream({
  name,
  state,
  tracked,
  in_flight,
  budget,
}: Overview['upstreams'][number]): Line {
  const { used, limit, window_ms } = budget;
  return [
    [escapeText(name)],
    UPSTREAM_STATES[state] ?? [escapeText(state)],
    [`${whole(tracked)} tracked`],
    [`${whole(in_flight)} in flight`],
    [
      `${whole(used)} of ${whole(limit)} requests per ${seconds(window_ms / 1_000)}`,
      used >= limit ? 'yellow' : undefined,
    ],
  ];
}

function toDeliveries({ at, deliveries }: Overview): Span[] {
  const { waiting, dead, oldest_waiting_at } = deliveries;
  const oldestS =
    oldest_waiting_at === null ? null : (Date.parse(at) - Date.parse(oldest_waiting_at)) / 1_000;
  return [
    [
      `${whole(waiting)} waiting${oldestS === null ? '' : `, the oldest for ${seconds(oldestS)}`}${GAP}`,
    ],
    dead === 0 ? ['no dead letters'] : [counted(dead, 'dead letter'), 'red'],
  ];
}

function toOpen({ submission_id, upstream, status, age_s }: Overview['oldest_open'][number]): Line {
  return [
    [seconds(age_s)],
    [escapeText(status), colourOf(status)],
    [escapeText(submission_id)],
    [escapeText(upstream)],
  ];
}

function requestsText({
  polls_per_submission,
  fixed_5s_polls_per_submission,
}: Overview['last_hour']): string {
  if (polls_per_submission === null) return 'not known';
  const fixed = fixed_5s_polls_per_submission;
  return `${polls_per_submission.toFixed(1)} per submission${fixed === null ? '' : `; polling every 5 s: ${fixed.toFixed(1)}`}`;
}

function spread(of: { p50: number; p90: number; p99: number } | null): string {
  return of === null
    ? 'not known'
    : `p50 ${seconds(of.p50)}, p90 ${seconds(of.p90)}, p99 ${seconds(of.p99)}`;
}

/** Returns bars for the newest values that fit, scaled to the highest. */
function sparkline(values: readonly number[], width: number): string {
  const shown = width > 0 ? values.slice(-width) : [];
  const highest = Math.max(1, ...shown);
  return shown
    .map((value) => BARS[Math.ceil((value / highest) * (BARS.length - 1))] ?? ' ')
    .join('');
}

function labelled(label: string, ...spans: Span[]): Line {
  return [[`${label.padEnd(LABEL_WIDTH)}  `, 'bold'], ...spans];
}

/** Returns spans side by side, wrapped at `columns`. */
function wrapped(label: string, spans: readonly Span[], columns: number): Line[] {
  const lines: Span[][] = [[]];
  let used = LABEL_WIDTH + 2;
  for (const span of spans) {
    const width = span[0].length + GAP.length;
    if (used + width > columns && lines.at(-1)?.length) {
      lines.push([]);
      used = LABEL_WIDTH + 2;
    }
    lines.at(-1)?.push(span, [GAP]);
    used += width;
  }
  return lines.map((line, index) => labelled(index === 0 ? label : '', ...line));
}

function rowsOf(label: string, rows: readonly Line[]): Line[] {
  const widthOf = (column: number) => Math.max(...rows.map((row) => row[column]?.[0].length ?? 0));
  return rows.map((row, index) =>
    labelled(
      index === 0 ? label : '',
      ...row.map(
        ([text, colour], column): Span => [`${text.padEnd(widthOf(column))}${GAP}`, colour],
      ),
    ),
  );
}

function toText(line: Line, columns: number, paint: Paint): string {
  let left = columns;
  const parts = line.map(([text, colour]) => {
    const shown = text.slice(0, left);
    left -= shown.length;
    return shown.trim() === '' ? shown : paint(colour, shown);
  });
  return parts.join('').trimEnd();
}

function whole(count: number): string {
  return count.toLocaleString('en');
}

function counted(count: number, name: string): string {
  return `${whole(count)} ${name}${count === 1 ? '' : 's'}`;
}

/** "0.4 s", "12 s", "3 min", "5 h", "2 d". */
function seconds(s: number): string {
  if (s < 10) return `${Number(Math.max(0, s).toFixed(1))} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7_200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`;
}
