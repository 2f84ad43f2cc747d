import type { PollingCost } from '../policy.ts';
import { checkingSchedule } from './checking-schedule.ts';

/** The distribution of finality time as a curve: probability of being final so long after tracking, not decreasing. */
export type Curve = readonly { afterMs: number; probability: number }[];

const EVERY_MS = 5_000;

/** When one submission by itself is polled best, and what that costs: the lower bound without neighbours. */
export function bestSchedule(curve: Curve, price: number): { pollsMs: number[]; cost: PollingCost } {
  const cdf = curve.map(({ probability }) => probability);
  const widths = curve.map(({ afterMs }, i) => (afterMs - (curve[i - 1]?.afterMs ?? 0)) / 1_000);
  const next = checkingSchedule({ cdf, widths, from: 0, price, endLag: 0 });
  const pollsMs: number[] = [];
  for (let i = next[0] ?? -1; i > 0; i = next[i] ?? -1) pollsMs.push(curve[i - 1]?.afterMs ?? 0);
  return { pollsMs, cost: costOf(curve, pollsMs) };
}

export function everyFiveSeconds(curve: Curve): PollingCost {
  const endMs = curve.at(-1)?.afterMs ?? 0;
  // A curve of days is not polled through one by one.
  const count = Math.min(20_000, Math.ceil(endMs / EVERY_MS) + 1);
  return costOf(
    curve,
    Array.from({ length: count }, (_, i) => i * EVERY_MS),
  );
}

/** Expected polls, and expected seconds between finality and the poll that finds it, of a submission polled at these times. */
function costOf(curve: Curve, pollsMs: readonly number[]): PollingCost {
  let requests = 0;
  let lagMs = 0;
  let found = 0;
  let i = 0;
  for (const pollMs of pollsMs) {
    requests += 1 - found;
    for (; i < curve.length && (curve[i] as Curve[number]).afterMs <= pollMs; i++) {
      const { afterMs, probability } = curve[i] as Curve[number];
      const before = curve[i - 1];
      const middleMs = (afterMs + (before?.afterMs ?? 0)) / 2;
      lagMs += (probability - (before?.probability ?? 0)) * (pollMs - middleMs);
      found = probability;
    }
  }
  return { requests, lagS: found > 0 ? lagMs / found / 1_000 : 0 };
}
