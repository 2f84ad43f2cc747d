import type { Observation } from '../domain/classify.ts';

/**
 * An open submission as a policy sees it. The pacer owns `dueAt`; the other fields are the policy's own notes, kept here
 * because a million submissions have no room for a second object each.
 */
export type Candidate = {
  readonly trackedAt: number;
  /** When it is asked about next, or, while it is in flight, when its answer counts as lost. */
  readonly dueAt: number;
  /** Its place in the order of tracking; 0: it stands in no line. */
  order: number;
  /** When the newest poll was sent that found it not final; NEVER at first. */
  openAt: number;
};

export const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Decides when each submission of one upstream is asked about. The pacer tells it everything that is answered; budget,
 * outages and lost answers are the pacer's own. Pure: time and randomness come from outside. Times are epoch milliseconds.
 */
export type PacingPolicy = {
  /** A submission is new, or resumed after a restart with its last answer at `polledAt`. Returns when to ask about it. */
  register(item: Candidate, known: { polledAt: number | null }, now: number): number;
  /** An answer about it came. Returns when to ask about it again, if that is still wanted. */
  learn(item: Candidate, observation: Observation, now: number): number;
  /** It is due. Returns when it is to be polled by all that is known now: now, or later. */
  confirm(item: Candidate, now: number): number;
  /** How likely a poll of it at this moment finds it final, 0 to 1: under a tight budget the highest goes first. */
  gain(item: Candidate, now: number): number;
  /** Nobody asks about it any more. */
  unregister(item: Candidate, now: number): void;
  /** What it knows about the upstream, to be kept over a restart; and what one before it knew, however old. */
  snapshot(): string | null;
  restore(learned: string): void;
  /** What it knows, and how it asks by that. */
  describe(now: number): PacingDescription;
  /** Why this one is asked about when it is. */
  reasonOf(item: Candidate, now: number): PolicyReason;
};

/**
 * `slot`: it is likely to become final in the slot in which it is polled. `scout`: it is polled first, on behalf of all that
 * are likely to become final with it. `age`: no slots are known, so its age decides. `net`: it was left alone for the
 * longest time allowed.
 */
export type PolicyReason = 'slot' | 'scout' | 'age' | 'net';

/** Requests per submission, and mean seconds between finality and the poll that finds it. */
export type PollingCost = { requests: number; lagS: number };

/** What the policy has learned, for people. Durations in milliseconds, counted from the moment of tracking. */
export type PacingDescription = {
  /** `slots`: submissions become final with the slots of a chain. `age`: nothing periodic is known. */
  mode: 'slots' | 'age';
  /** null: no slots are known. `nextEventAt`: median of the next moment at which a group becomes final, epoch ms. */
  slot: { periodMs: number; nextEventAt: number; emptyShare: number } | null;
  /** Serial senders of the upstream, as far as can be told; null: all are sent at once. */
  senders: number | null;
  /** Finals from which all this was learned lately. */
  observed: number;
  /** Requests that one second of lag is worth. */
  lagPrice: number;
  /** Probability that a submission tracked now is final after so long: not decreasing, 50 to 400 points. */
  curve: { afterMs: number; probability: number }[];
  /** When it would be polled, if nothing were learned from its neighbours. */
  pollsMs: number[];
  /** What polling costs now, measured over the newest finals; null before the first. */
  current: PollingCost | null;
  /** The least that is possible for a submission by itself with this distribution. */
  lowerBound: PollingCost;
  /** What polling every 5 s would cost with this distribution. */
  everyFiveSeconds: PollingCost;
};

/** `move`: another submission than the one in hand is to be asked about at another time. */
export type PolicyFactory = (deps: {
  reschedule: (item: Candidate, dueAt: number) => void;
  random: () => number;
}) => PacingPolicy;
