import type {
  Candidate,
  PacingDescription,
  PacingPolicy,
  PolicyFactory,
} from '../../src/pacing/index.ts';

/**
 * Returns the delay after the n-th poll of a submission (n from 1), in milliseconds. Submissions do
 * not affect each other.
 */
type Rule = (polls: number, random: () => number) => number;

const fixed =
  (everyMs: number): Rule =>
  () =>
    everyMs;

/** 1 s, 1.5 s, 2.25 s … 30 s. */
const exponential: Rule = (polls) => Math.min(30_000, 1_000 * 1.5 ** (polls - 1));

/** The waiters of the AWS SDKs: a random delay between a minimum and a limit that doubles. */
const waiter: Rule = (polls, random) => {
  const [minMs, maxMs] = [2_000, 120_000];
  return minMs + random() * (Math.min(maxMs, minMs * 2 ** Math.min(polls - 1, 20)) - minMs);
};

const NOTHING_LEARNED: PacingDescription = {
  mode: 'age',
  slot: null,
  observed: 0,
  lagPrice: 1,
  curve: [],
  pollsMs: [],
};

/** The members of PacingPolicy that a rule without learning does not need. */
export const LEARNS_NOTHING: Omit<PacingPolicy, 'register' | 'learn'> = {
  confirm: (_item, now) => now,
  lagOf: () => null,
  gain: () => 0,
  unregister: () => {},
  observeHead: () => {},
  snapshot: () => null,
  restore: () => {},
  describe: () => NOTHING_LEARNED,
  isOverdue: () => false,
};

/** Polls at once, and again after each response with the delay of the rule. */
function alone(rule: Rule): PolicyFactory {
  return ({ random }) => {
    const polls = new WeakMap<Candidate, number>();
    return {
      register: (_item, _known, now) => now,
      learn(item, _observation, now) {
        const count = (polls.get(item) ?? 0) + 1;
        polls.set(item, count);
        return now + rule(count, random);
      },
      ...LEARNS_NOTHING,
    };
  };
}

export const RULES: Record<string, PolicyFactory> = {
  'every 5 s': alone(fixed(5_000)),
  exponential: alone(exponential),
  'AWS waiter': alone(waiter),
};
