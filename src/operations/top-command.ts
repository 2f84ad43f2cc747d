import type { Command } from 'commander';
import { type ConnectOptions, connect, serverAddress, withServer } from '../cli/connect.ts';
import { durationOption } from '../cli/input.ts';
import { type Colour, colourOf, type Paint, paintFor, toJson } from '../cli/output.ts';
import { untilStopped } from '../cli/signals.ts';
import { pause } from '../client/backoff.ts';
import { isTransient } from '../client/errors.ts';
import type { Alert, DawatchClient, Overview } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

/** Switches to the alternate screen, hides the cursor and disables line wrapping. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const CTRL_C = '\u0003';

type Input = NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?: (raw: boolean) => unknown };

/** Takes over the whole terminal until `close` or the end of the process. */
export function openScreen({ output, input }: { output: NodeJS.WritableStream; input: Input }) {
  let isOpen = true;
  const { promise: quit, resolve } = Promise.withResolvers<void>();
  const onData = (bytes: Buffer | string) => {
    if (/[qQ]/.test(String(bytes)) || String(bytes).includes(CTRL_C)) resolve();
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    process.off('exit', close);
    output.write(LEAVE);
    if (!input.isTTY) return;
    input.off('data', onData).pause();
    input.setRawMode?.(false);
  };
  process.once('exit', close);
  output.write(ENTER);
  if (input.isTTY) {
    input.setRawMode?.(true);
    input.on('data', onData).resume();
  }
  return {
    /** Resolves when `q` or Ctrl-C is pressed. */
    quit,
    /** Restores the terminal. Idempotent. */
    close,
    draw(lines: readonly string[]): void {
      if (isOpen)
        output.write(
          `${HOME}${lines.map((line) => `${line}${CLEAR_LINE_END}`).join('\r\n')}${CLEAR_BELOW}`,
        );
    },
  };
}

type Options = ConnectOptions & { interval: number; once?: boolean; json?: boolean };

/** Used where the output is not a terminal, or the terminal reports the size 0. */
const DEFAULT_COLUMNS = 100;
const DEFAULT_ROWS = 24;

export function addTop(program: Command): void {
  withServer(program.command('top'))
    .description(
      'Show live statistics: statuses, finalizations, lag, upstreams, deliveries. Press q to quit.',
    )
    .addOption(
      durationOption('--interval', 'refresh interval', {
        least: '250ms',
        most: '1h',
        fallback: '1s',
      }),
    )
    .option('--once', 'print one snapshot and exit; the default without a terminal')
    .option('--json', 'print one JSON object and exit, as returned by the HTTP interface')
    .addHelpText('after', '\nExample:\n  dawatch top --interval 5s')
    .action(async (options: Options) => {
      const address = serverAddress(options);
      const client = connect(options);
      // Reports an unreachable server or a refused key before the screen opens.
      const overview = await client.overview();
      if (options.json) return void process.stdout.write(`${toJson(overview)}\n`);
      const isLive = process.stdout.isTTY && process.env.TERM !== 'dumb' && !options.once;
      const { alerts } = await client.alerts.list();
      const view = { address, overview, alerts, error: undefined };
      if (isLive) await live(view, client, options.interval);
      else process.stdout.write(`${snapshot(view, Number.POSITIVE_INFINITY).join('\n')}\n`);
    });
}

async function live(first: View, client: DawatchClient, intervalMs: number): Promise<void> {
  let view = first;
  const screen = openScreen({ output: process.stdout, input: process.stdin });
  const redraw = () => screen.draw(snapshot(view, process.stdout.rows || DEFAULT_ROWS));
  const stopped = new AbortController();
  const stop = () => stopped.abort();
  void untilStopped().then(stop);
  process.once('SIGHUP', stop);
  void screen.quit.then(stop);
  process.stdout.on('resize', redraw);
  try {
    for (;;) {
      redraw();
      await pause(intervalMs, stopped.signal);
      if (stopped.signal.aborted) return;
      view = await refresh(view, client, stopped.signal);
    }
  } finally {
    process.stdout.off('resize', redraw);
    screen.close();
  }
}

/** Returns the next view. A transient error keeps the last overview; other errors are thrown. */
async function refresh(view: View, client: DawatchClient, signal: AbortSignal): Promise<View> {
  try {
    const [overview, { alerts }] = await Promise.all([
      client.overview(signal),
      client.alerts.list({}, signal),
    ]);
    return { ...view, overview, alerts, error: undefined };
  } catch (error) {
    if (signal.aborted) return view;
    if (!isTransient(error)) throw error;
    return { ...view, error: error.message };
  }
}

function snapshot(view: View, rows: number): string[] {
  return frame(view, process.stdout.columns || DEFAULT_COLUMNS, rows, paintFor(process.stdout));
}

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
