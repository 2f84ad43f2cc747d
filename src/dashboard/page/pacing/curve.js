/**
 * @typedef {readonly { after_ms: number, probability: number }[]} Curve a distribution of finality
 * time
 */

/** A plot ends a little after this probability: the last percent may take days. */
const SHOWN = 0.98;

/**
 * Time at which the probability is reached; null if the curve ends before. @param {Curve} curve
 * @param {number} probability
 */
export function quantileMs(curve, probability) {
  const index = curve.findIndex((point) => point.probability >= probability);
  const after = curve[index];
  if (!after) return null;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const rise = after.probability - before.probability;
  const part = rise > 0 ? Math.max(0, probability - before.probability) / rise : 1;
  return before.after_ms + part * (after.after_ms - before.after_ms);
}

/** @param {Curve} curve @param {number} ms */
export function probabilityAt(curve, ms) {
  const index = curve.findIndex((point) => point.after_ms >= ms);
  const after = curve[index];
  if (!after) return curve.at(-1)?.probability ?? 0;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const span = after.after_ms - before.after_ms;
  const part = span > 0 ? (ms - before.after_ms) / span : 1;
  return before.probability + part * (after.probability - before.probability);
}

/**
 * Returns the curve and the polls on it in the form of a plot: times in seconds, and two series
 * over them. Empty if there is nothing to draw.
 * @param {Curve} curve @param {readonly number[]} pollsMs
 * @returns {{ at: number[], final: number[], polls: (number | null)[] }}
 */
export function plotData(curve, pollsMs) {
  const last = curve.at(-1);
  if (!last || last.after_ms <= 0 || last.probability <= 0) return { at: [], final: [], polls: [] };
  const endMs =
    Math.min(last.after_ms, 1.1 * (quantileMs(curve, SHOWN * last.probability) ?? last.after_ms)) ||
    last.after_ms;
  const shown = pollsMs.filter((ms) => ms <= endMs);
  const times = new Set([
    0,
    ...curve.map(({ after_ms }) => after_ms).filter((ms) => ms <= endMs),
    ...shown,
    endMs,
  ]);
  const at = [...times].toSorted((a, b) => a - b);
  const isPoll = new Set(shown);
  return {
    at: at.map((ms) => ms / 1_000),
    final: at.map((ms) => probabilityAt(curve, ms)),
    polls: at.map((ms) => (isPoll.has(ms) ? probabilityAt(curve, ms) : null)),
  };
}
