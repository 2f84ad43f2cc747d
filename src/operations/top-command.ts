import type { Command } from 'commander';
import { paintFor } from '../cli/colors.ts';
import { type ConnectOptions, connect, serverAddress, withServer } from '../cli/connect.ts';
import { durationOption } from '../cli/duration.ts';
import { toJson } from '../cli/json.ts';
import { untilStopped } from '../cli/signals.ts';
import { pause } from '../client/backoff.ts';
import { isTransient } from '../client/errors.ts';
import type { DawatchClient } from '../client/index.ts';
import { frame, type View } from './top-frame.ts';

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
