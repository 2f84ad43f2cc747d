// Loaded before the product with --import: shifts the machine's clock by the milliseconds in a
// file, and copies them to a file with the suffix .applied.
import { copyFileSync, readFileSync, watchFile } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const file = process.env.SHIFT_FILE;
const read = () => Number(readFileSync(file, 'utf8'));
let shiftMs = read();
// As where the real clock was wrong when the process began; a later step moves only what reads the
// clock again.
const origin = performance.timeOrigin + shiftMs;
Object.defineProperty(performance, 'timeOrigin', { get: () => origin });
watchFile(file, { interval: 100, persistent: false }, () => {
  shiftMs = read();
  if (isMainThread) copyFileSync(file, `${file}.applied`);
});

const RealDate = globalThis.Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shiftMs);
    else super(...args);
  }
  static now() {
    return RealDate.now() + shiftMs;
  }
};
