import type { Candidate, PacingDescription, PacingPolicy, PolicyFactory } from '../../src/pacing/policy.ts';

/** A rule that every submission follows by itself: the delay after its n-th answer, n from 1. */
type Rule = (answers: number, random: () => number) => number;

const fixed =
  (everyMs: number): Rule =>
  () =>
    everyMs;

/** 1 s, 1.5 s, 2.25 s … 30 s. */
const exponential: Rule = (answers) => Math.min(30_000, 1_000 * 1.5 ** (answers - 1));

/** The waiters of the AWS SDKs: anything between the least delay and one that doubles. */
const waiter: Rule = (answers, random) => {
  const [leastMs, mostMs] = [2_000, 120_000];
  return leastMs + random() * (Math.min(mostMs, leastMs * 2 ** Math.min(answers - 1, 20)) - leastMs);
};

const NOTHING_LEARNED: PacingDescription = {
  mode: 'age',
  slot: null,
  senders: null,
  observed: 0,
  lagPrice: 1,
  curve: [],
  pollsMs: [],
  current: null,
  lowerBound: { requests: 0, lagS: 0 },
  everyFiveSeconds: { requests: 0, lagS: 0 },
};

/** What remains of a policy that looks at each submission alone. */
export const LEARNS_NOTHING: Omit<PacingPolicy, 'enrol' | 'learn'> = {
  confirm: (_item, now) => now,
  gain: () => 0,
  leave: () => {},
  learned: () => null,
  recall: () => {},
  describe: () => NOTHING_LEARNED,
  why: () => 'age',
};

/** Asks at once, and then after each answer as the rule says. */
function alone(rule: Rule): PolicyFactory {
  return ({ random }) => {
    const answers = new WeakMap<Candidate, number>();
    return {
      enrol: (_item, _known, now) => now,
      learn(item, _observation, now) {
        const count = (answers.get(item) ?? 0) + 1;
        answers.set(item, count);
        return now + rule(count, random);
      },
      ...LEARNS_NOTHING,
    };
  };
}

export const BASELINES: Record<string, PolicyFactory> = {
  'every 5 s': alone(fixed(5_000)),
  exponential: alone(exponential),
  'AWS waiter': alone(waiter),
};
