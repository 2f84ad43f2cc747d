import type { Run } from '../../../bench/pacing/simulate.ts';
import {
  type Candidate,
  ceilingMs,
  NEVER,
  type PacingPolicy,
  type PolicyFactory,
} from '../../../src/pacing/index.ts';

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

/** Wraps a policy and counts how often it reschedules submissions other than the current one. */
export function countingReschedules(policy: PolicyFactory): {
  policy: PolicyFactory;
  reschedules: () => number;
} {
  let count = 0;
  const counting: PolicyFactory = ({ reschedule, random }) =>
    policy({
      reschedule(item, dueAt) {
        count++;
        reschedule(item, dueAt);
      },
      random,
    });
  return { policy: counting, reschedules: () => count };
}

/**
 * Wraps a policy that is replaced at intervals by one with the restored snapshot, as after a
 * restart.
 */
export function restarting(policy: PolicyFactory, everyMs: number): PolicyFactory {
  return (deps) => {
    const open = new Set<Candidate>();
    let current = policy(deps);
    let restartAt: number | undefined;
    const restart = (now: number) => {
      const learned = current.snapshot();
      current = policy(deps);
      if (learned !== null) current.restore(learned);
      for (const item of open) {
        const polledAt = item.openAt === NEVER ? null : item.openAt;
        Object.assign(item, { order: 0, openAt: NEVER });
        deps.reschedule(item, current.register(item, { polledAt }, now));
      }
    };
    return through(() => current, {
      register(item, known, now) {
        restartAt ??= now + everyMs;
        if (now >= restartAt) {
          restart(now);
          restartAt = now + everyMs;
        }
        open.add(item);
        return current.register(item, known, now);
      },
      unregister(item, now) {
        open.delete(item);
        current.unregister(item, now);
      },
    });
  };
}

/** Delegates to the current policy. */
function through(current: () => PacingPolicy, own: Partial<PacingPolicy>): PacingPolicy {
  return {
    register: (...args) => current().register(...args),
    learn: (...args) => current().learn(...args),
    confirm: (...args) => current().confirm(...args),
    gain: (...args) => current().gain(...args),
    unregister: (...args) => current().unregister(...args),
    snapshot: () => current().snapshot(),
    restore: (learned) => current().restore(learned),
    describe: (now) => current().describe(now),
    reasonOf: (...args) => current().reasonOf(...args),
    ...own,
  };
}
