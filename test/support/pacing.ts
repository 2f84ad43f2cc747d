import type { BreakerSettings } from '../../src/monitor/breaker.ts';
import type { BudgetSettings } from '../../src/monitor/budget.ts';
import { type Paced, Pacer } from '../../src/monitor/pacer.ts';

export const LEASE_MS = 10_000;
export const RECHECK_MS = 60_000;
/** The distance of questions: the tests of the pacer need no policy that thinks. */
export const DELAY_MS = 2_000;
export const PROBE_MS = 1_000;

export type Pacing = Partial<BudgetSettings & BreakerSettings> & { random?: () => number };

/** A pacer with room for everything, unless said otherwise, and without jitter. */
export function createPacer(pacing: Pacing = {}): Pacer {
  const { requests = 1_000, perMs = 1_000, concurrency = 100, random = () => 0.5 } = pacing;
  const { failures = 3, probeMs = PROBE_MS, maxProbeMs = 30_000 } = pacing;
  return new Pacer({
    settings: {
      budget: { requests, perMs, concurrency },
      breaker: { failures, probeMs, maxProbeMs },
      leaseMs: LEASE_MS,
      recheckMs: RECHECK_MS,
    },
    policy: () => DELAY_MS * (0.8 + 0.4 * random()),
    random,
  });
}

export function paced(submissionId: string, fields: Partial<Paced> = {}): Paced {
  return { submissionId, trackedAt: 0, seen: false, dueAt: 0, ...fields };
}

/** A pacer with these submissions, all due by 0, in the order given. */
export function pacerOf(submissionIds: readonly string[], pacing: Pacing = {}): Pacer {
  const pacer = createPacer(pacing);
  for (const [index, id] of submissionIds.entries()) pacer.add(paced(id, { dueAt: index - submissionIds.length }));
  return pacer;
}

export function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `s${index}`);
}

/** Everything the pacer gives at this moment, asked as its loop asks: until it gives nothing more. */
export function drain(pacer: Pacer, now: number): string[] {
  const all: string[] = [];
  for (let batch = pacer.next(now); batch.length > 0; batch = pacer.next(now)) all.push(...batch);
  return all;
}

/** Numbers in [0, 1) that a seed decides (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
