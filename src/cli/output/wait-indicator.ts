import { escapeText } from '../../domain/text.ts';

const FIRST_SHOWN_AFTER_MS = 1_000;
const REDRAW_MS = 200;
const CLEAR_LINE = '\r\u001b[K';

/** Names what a command still waits for, in one line on a terminal, once that takes longer than a second. */
export type WaitIndicator = {
  begin(names: readonly string[]): void;
  end(name: string): void;
  stop(): void;
};

export function createWaitIndicator(stream: NodeJS.WriteStream): WaitIndicator {
  if (!stream.isTTY) return { begin: () => undefined, end: () => undefined, stop: () => undefined };
  const open: string[] = [];
  const beganAt = performance.now();
  let isShown = false;
  const timer = setInterval(() => {
    const waitedMs = performance.now() - beganAt;
    if (waitedMs < FIRST_SHOWN_AFTER_MS || open.length === 0) return;
    isShown = true;
    stream.write(`${CLEAR_LINE}${waitingLine(open, waitedMs, stream.columns)}`);
  }, REDRAW_MS);
  return {
    begin: (names) => open.push(...names),
    end(name) {
      const index = open.indexOf(name);
      if (index >= 0) open.splice(index, 1);
    },
    stop() {
      clearInterval(timer);
      if (isShown) stream.write(CLEAR_LINE);
    },
  };
}

/** Waits for one thing, and says so if it takes its time. */
export async function withWaitIndicator<T>(name: string, work: Promise<T>): Promise<T> {
  const waiting = createWaitIndicator(process.stderr);
  waiting.begin([name]);
  try {
    return await work;
  } finally {
    waiting.stop();
  }
}

function waitingLine(names: readonly string[], waitedMs: number, columns: number): string {
  const line = `${(waitedMs / 1_000).toFixed(0)} s, waiting for ${escapeText(names.join(', '))}`;
  return line.length < columns ? line : `${line.slice(0, Math.max(0, columns - 2))}…`;
}
