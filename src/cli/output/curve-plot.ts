import type { UpstreamPacing } from '../../client/index.ts';

const WIDTH = 64;
const HEIGHT = 6;
const EIGHTHS = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/** The time axis ends shortly after this probability, because the last percent may take days. */
const SHOWN_PROBABILITY = 0.98;
const TICKS = 4;

type Curve = Pick<UpstreamPacing, 'curve' | 'polls_ms'>;

/**
 * Returns terminal lines that plot the cumulative probability of finality, with the scheduled polls on the time axis. Empty
 * without a curve.
 */
export function curvePicture({ curve, polls_ms: polls }: Curve): string[] {
  const last = curve.at(-1);
  if (!last || !(last.after_ms > 0)) return [];
  const endMs =
    Math.min(last.after_ms, 1.1 * (quantileMs(curve, SHOWN_PROBABILITY * last.probability) ?? last.after_ms)) ||
    last.after_ms;
  const columns = Array.from(
    { length: WIDTH },
    (_, column) => interpolated(curve, 'after_ms', ((column + 0.5) / WIDTH) * endMs, 'probability') ?? last.probability,
  );
  const rows = Array.from({ length: HEIGHT }, (_, index) => {
    const row = HEIGHT - 1 - index;
    const label = row === HEIGHT - 1 ? '100 %' : row === HEIGHT / 2 - 1 ? '50 %' : '';
    const cells = columns.map((probability) => eighths(probability * HEIGHT - row));
    return `${label.padStart(5)} │${cells.join('').trimEnd()}`;
  });
  const axis = Array<string>(WIDTH).fill('─');
  for (const ms of polls) if (ms <= endMs) axis[Math.min(WIDTH - 1, Math.floor((ms / endMs) * WIDTH))] = '▲';
  return [...rows, `${'0 %'.padStart(5)} └${axis.join('')}`, `${' '.repeat(7)}${scale(endMs)}`];
}

/** Returns the interpolated time at which the probability is reached, or null if the curve ends before it. */
export function quantileMs(curve: UpstreamPacing['curve'], probability: number): number | null {
  return interpolated(curve, 'probability', probability, 'after_ms');
}

type Point = UpstreamPacing['curve'][number];

/** Returns the value of `to` where `of` reaches `value`, or null if the curve ends before it. The curve begins at zero. */
function interpolated(curve: readonly Point[], of: keyof Point, value: number, to: keyof Point): number | null {
  const index = curve.findIndex((point) => point[of] >= value);
  const after = curve[index];
  if (!after) return null;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const span = after[of] - before[of];
  const part = span > 0 ? Math.max(0, value - before[of]) / span : 1;
  return before[to] + part * (after[to] - before[to]);
}

/** 450 ms · 4.2 s · 41 s · 3 min · 2 h · 4 d */
export function roughly(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 119_500) return `${Math.round(ms / 1_000)} s`;
  if (ms < 119.5 * 60_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 47.5 * 3_600_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} d`;
}

function eighths(height: number): string {
  return EIGHTHS[Math.round(8 * Math.min(1, Math.max(0, height)))] ?? ' ';
}

function scale(endMs: number): string {
  let line = '0 s';
  for (let tick = 1; tick <= TICKS; tick++) {
    const label = roughly((tick / TICKS) * endMs);
    line = `${line.padEnd((tick / TICKS) * WIDTH - label.length)}${label}`;
  }
  return line;
}
