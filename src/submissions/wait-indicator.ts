import { escapeText } from '../lib/text.ts';

const FIRST_SHOWN_AFTER_MS = 1_000;
const REDRAW_MS = 200;
const CLEAR_LINE = '\r\u001b[K';

/**
 * Shows on a terminal, in one line, the operations that a command has been waiting for longer than
 * a second.
 */
export function createWaitIndicator(stream: NodeJS.WriteStream) {
  const open: string[] = [];
  const beganAt = performance.now();
  let isShown = false;
  const timer = setInterval(() => {
    const waitedMs = performance.now() - beganAt;
    if (!stream.isTTY || waitedMs < FIRST_SHOWN_AFTER_MS || open.length === 0) return;
    isShown = true;
    stream.write(`${CLEAR_LINE}${waitingLine(open, waitedMs, stream.columns)}`);
  }, REDRAW_MS);
  return {
    begin: (names: readonly string[]) => open.push(...names),
    end(name: string): void {
      const index = open.indexOf(name);
      if (index >= 0) open.splice(index, 1);
    },
    stop(): void {
      clearInterval(timer);
      if (isShown) stream.write(CLEAR_LINE);
    },
  };
}

/** Waits for one operation and shows the indicator meanwhile. */
export async function withWaitIndicator<T>(name: string, work: Promise<T>): Promise<T> {
  const indicator = createWaitIndicator(process.stderr);
  indicator.begin([name]);
  try {
    return await work;
  } finally {
    indicator.stop();
  }
}

function waitingLine(names: readonly string[], waitedMs: number, columns: number): string {
  const line = `${(waitedMs / 1_000).toFixed(0)} s, waiting for ${escapeText(names.join(', '))}`;
  return line.length < columns ? line : `${line.slice(0, Math.max(0, columns - 2))}…`;
}
