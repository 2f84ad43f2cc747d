import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** Lines, with a bar below them on a terminal; plain lines elsewhere. */
export type Progress = {
  line(text: string): void;
  advance(done: number, note?: string): void;
  stop(): void;
};

export function createProgress(total: number, label: string, stream: NodeJS.WriteStream): Progress {
  if (!stream.isTTY)
    return { line: (text) => stream.write(`${text}\n`), advance: () => undefined, stop: () => undefined };
  // Only where it is seen: it would make every command slower.
  const { MultiBar, Presets }: typeof import('cli-progress') = require('cli-progress');
  const format = `${label} {bar} {value}/{total} {note}`;
  const bars = new MultiBar({ format, stream, hideCursor: true, clearOnComplete: false }, Presets.shades_classic);
  const bar = bars.create(total, 0, { note: '' });
  return {
    line: (text) => bars.log(`${text}\n`),
    advance: (done, note = '') => bar.update(done, { note }),
    stop() {
      // The library keeps lines for its next redraw, and forgets them where there is none.
      bars.update();
      bars.stop();
    },
  };
}
