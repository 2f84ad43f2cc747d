import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Prints lines, and a progress bar below them on a terminal. */
export type Progress = {
  line(text: string): void;
  advance(done: number, note?: string): void;
  stop(): void;
};

export function createProgress(total: number, label: string, stream: NodeJS.WriteStream): Progress {
  if (!stream.isTTY)
    return {
      line: (text) => stream.write(`${text}\n`),
      advance: () => undefined,
      stop: () => undefined,
    };
  // Loaded on demand to keep the start of other commands fast.
  const { MultiBar, Presets }: typeof import('cli-progress') = require('cli-progress');
  const format = `${label} {bar} {value}/{total} {note}`;
  const bars = new MultiBar(
    { format, stream, hideCursor: true, clearOnComplete: false },
    Presets.shades_classic,
  );
  const bar = bars.create(total, 0, { note: '' });
  return {
    line: (text) => bars.log(`${text}\n`),
    advance: (done, note = '') => bar.update(done, { note }),
    stop() {
      // The library buffers lines until its next redraw and would drop them on stop.
      bars.update();
      bars.stop();
    },
  };
}
