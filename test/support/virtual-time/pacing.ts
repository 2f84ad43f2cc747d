import { LEARNS_NOTHING } from '../../../bench/pacing/rules.ts';
import type { Run } from '../../../bench/pacing/simulate.ts';
import {
  ceilingMs,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
} from '../../../src/pacing/index.ts';
import type { BudgetSettings, Paced } from '../../../src/polling/poll-queues.ts';
import { Scheduler } from '../../../src/polling/scheduler.ts';
import type { BreakerSettings } from '../../../src/polling/upstream-health.ts';
import { observation, type VerdictName } from '../ledger/domain.ts';

export const LEASE_MS = 10_000;
export const RECHECK_MS = 60_000;
/** The interval between polls of the steady policy that most tests of the scheduler use. */
export const DELAY_MS = 2_000;
export const PROBE_MS = 1_000;

export type Pacing = Partial<BudgetSettings & BreakerSettings> & {
  random?: () => number;
  policy?: PolicyFactory;
};

/** Returns a scheduler without jitter; the budget is ample by default. */
export function createScheduler(pacing: Pacing = {}): Scheduler {
  const { requests = 1_000, perMs = 1_000, concurrency = 100, random = () => 0.5 } = pacing;
  const { failures = 3, probeMs = PROBE_MS, maxProbeMs = 30_000 } = pacing;
  return new Scheduler({
    settings: {
      budget: { requests, perMs, concurrency },
      breaker: { failures, probeMs, maxProbeMs },
      leaseMs: LEASE_MS,
      recheckMs: RECHECK_MS,
    },
    policy: pacing.policy ?? (() => steady(() => DELAY_MS * (0.8 + 0.4 * random()))),
    random,
  });
}

/** A possible state of a policy: slots of 20 s, the next group in 10 s. */
export function learnedBy(now: number): PacingDescription {
  return {
    mode: 'slots',
    slot: { periodMs: 20_000, nextEventAt: now + 10_000, emptyShare: 0.03 },
    observed: 200,
    lagPrice: 1,
    curve: Array.from({ length: 61 }, (_, s) => ({
      afterMs: s * 1_000,
      probability: Math.max(0, (s - 20) / 40),
    })),
    pollsMs: [42_000, 60_000],
  };
}

/** A steady policy with this description. */
export function describing(description: (now: number) => PacingDescription): PolicyFactory {
  return () => ({ ...steady(() => DELAY_MS), describe: description });
}

/** Polls at tracking, and again a fixed delay after each result. */
function steady(delayMs: () => number): PacingPolicy {
  return {
    register: (item, { polledAt }) => (polledAt === null ? item.trackedAt : polledAt + delayMs()),
    learn: (_item, _observation, now) => now + delayMs(),
    ...LEARNS_NOTHING,
  };
}

/**
 * Polls at once, and then at distances that grow with the age, from 2 s to 30 s: simple enough to
 * foresee.
 */
export const byAge: PolicyFactory = () => {
  const delayMs = (ageMs: number) => Math.min(30_000, 2_000 + Math.max(0, ageMs) / 2);
  return {
    ...LEARNS_NOTHING,
    register: ({ trackedAt }, { polledAt }, now) =>
      polledAt === null ? trackedAt : polledAt + delayMs(now - trackedAt),
    learn(item, { kind, at, durationMs }, now) {
      if (kind === 'pending' || kind === 'not_found' || kind === 'error')
        item.openAt = at - durationMs;
      return now + delayMs(now - item.trackedAt);
    },
  };
};

/** Due when it is tracked. */
export function paced(
  submissionId: string,
  fields: { dueAt?: number; seen?: boolean } = {},
): Paced {
  return { submissionId, trackedAt: fields.dueAt ?? 0, seen: fields.seen ?? false };
}

/** Returns a scheduler with these submissions, all due by 0, in the given order. */
export function schedulerOf(submissionIds: readonly string[], pacing: Pacing = {}): Scheduler {
  const scheduler = createScheduler(pacing);
  for (const [index, id] of submissionIds.entries())
    scheduler.add(paced(id, { dueAt: index - submissionIds.length }), 0);
  return scheduler;
}

export function ids(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `s${index}`);
}

/**
 * Returns all ids that the scheduler returns now, in repeated calls like those of the poll loop.
 */
export function drain(scheduler: Scheduler, now: number): string[] {
  const all: string[] = [];
  for (let batch = scheduler.next(now); batch.length > 0; batch = scheduler.next(now))
    all.push(...batch);
  return all;
}

/** Fails what the scheduler polls now: the control, if that is all. Returns the new state. */
export function failNext(scheduler: Scheduler, how: VerdictName, now: number): string | null {
  const states = drain(scheduler, now).map((id) =>
    scheduler.observe(observation(how, now, id), true, now),
  );
  return states.at(-1) ?? null;
}

/** A poll takes 70 ms at most; one second is added as a margin. */
export const SLACK_MS = 1_000;

/** Returns by how much the longest interval between polls exceeded the safety net. */
export function excessOverSafetyNet(submissions: Run['submissions']): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (const { trackedAt, polledAt } of submissions) {
    let before = trackedAt;
    for (const at of polledAt) {
      worst = Math.max(worst, at - before - ceilingMs({ maxIntervalMs: 60_000 }, at - trackedAt));
      before = at;
    }
  }
  return worst;
}

/** Returns the mean requests + seconds of lag of a submission. */
export function costOf(submissions: Run['submissions']): number {
  const costs = submissions.map(
    ({ polledAt, detectedAt, finalAt }) => polledAt.length + (detectedAt - finalAt) / 1_000,
  );
  return costs.reduce((sum, cost) => sum + cost, 0) / submissions.length;
}
