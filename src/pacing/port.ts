/**
 * An open submission as a policy sees it. The scheduler writes `dueAt`. The policy writes `order`
 * and `openAt`, which are stored here to avoid a second object for each of up to a million
 * submissions.
 */
export type Candidate = {
  readonly trackedAt: number;
  /**
   * The next poll time or, while a poll is in flight, the time at which its lease expires; epoch
   * ms.
   */
  readonly dueAt: number;
  /** Position in the order of tracking, from 1; 0 outside the waiting line. */
  order: number;
  /**
   * Send time of the newest poll that found the submission open (not final), epoch ms; NEVER before
   * the first.
   */
  openAt: number;
};

/**
 * The result of one poll. `at`: when the response arrived, epoch milliseconds. Kinds of the last
 * line say nothing about finality.
 */
export type PollResult = { at: number; durationMs: number } & (
  | { kind: 'finalized'; blockNumber: number | null }
  | { kind: 'pending' | 'error' | 'not_found' }
  | { kind: 'rejected' | 'unauthorized' | 'throttled' | 'unavailable' }
);

/**
 * A finalized block of the chain, as a node of the chain announced it: every block up to `number`
 * is final. `at`: when the node announced it, epoch milliseconds.
 */
export type FinalizedHead = { number: number; at: number };

export const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Decides when each submission of one upstream is polled. The scheduler passes every observation to
 * the policy and handles the request budget, outages and expired leases itself. Performs no I/O and
 * reads no clock. Times are epoch milliseconds.
 */
export type PacingPolicy = {
  /**
   * Adds a submission that is new, or that was last polled at `polledAt` before a restart. Returns
   * its next poll time.
   */
  register(item: Candidate, known: { polledAt: number | null }, now: number): number;
  /**
   * Returns the expected time (ms) for which a submission has been final that a poll found final at
   * `at`; null while too few are known. Called before `learn`.
   */
  lagOf(
    item: Candidate,
    result: { blockNumber: number | null; at: number },
    now: number,
  ): number | null;
  /**
   * Learns from the result of a poll. Returns the next poll time, which the scheduler ignores for a
   * final submission.
   */
  learn(item: Candidate, result: PollResult, now: number): number;
  /**
   * Learns that the chain has finalized blocks. Heads may arrive twice, late, out of order and with
   * gaps, and may be wrong. A policy that learns without a chain ignores them.
   */
  observeHead(head: FinalizedHead, now: number): void;
  /**
   * Returns the poll time of a due submission by the current state: now, or later if it changed
   * since.
   */
  confirm(item: Candidate, now: number): number;
  /**
   * Returns the probability that a poll now finds the submission final. Under a tight budget the
   * highest is sent first.
   */
  gain(item: Candidate, now: number): number;
  /** Removes a submission that is no longer polled. */
  unregister(item: Candidate, now: number): void;
  /** Returns the learned state, to be stored across restarts; null if the policy learns nothing. */
  snapshot(): string | null;
  /** Continues with a snapshot of any age. Ignores an invalid one. */
  restore(learned: string): void;
  /** Returns the learned state in a form for operators. */
  describe(now: number): PacingDescription;
  /** Returns the reason for the next poll of this submission. */
  reasonOf(item: Candidate, now: number): PolicyReason;
};

/**
 * `slot`: the submission is likely to become final in the slot of the poll. `scout`: it is polled
 * first, on behalf of all submissions that are likely to become final with it. `age`: no slots are
 * known, so its age decides. `net`: the safety net, the longest time that a submission may be left
 * unpolled.
 */
export type PolicyReason = 'slot' | 'scout' | 'age' | 'net';

/** Requests per submission, and mean seconds between finality and the poll that finds it. */
export type PollingCost = { requests: number; lagS: number };

/**
 * What the policy has learned, in a form for operators. Durations are milliseconds and begin at
 * tracking.
 */
export type PacingDescription = {
  /**
   * `slots`: submissions become final with the slots of a chain. `age`: nothing periodic is known.
   */
  mode: 'slots' | 'age';
  /**
   * null: no slots are known. `nextEventAt`: median of the next moment at which a group becomes
   * final, epoch ms.
   */
  slot: { periodMs: number; nextEventAt: number; emptyShare: number } | null;
  /** Estimated number of serial senders of the upstream; null: all submissions are sent at once. */
  senders: number | null;
  /** Number of final submissions that the policy has learned from. */
  observed: number;
  /** Requests that one second of lag is worth. */
  lagPrice: number;
  /**
   * Probability that a submission tracked now is final after each time; not decreasing, 50 to 400
   * points.
   */
  curve: { afterMs: number; probability: number }[];
  /** The poll times of that submission if no other submission were polled. */
  pollsMs: number[];
  /** Cost measured over the newest final submissions; null before the first. */
  current: PollingCost | null;
  /** Least expected cost of a single submission with this distribution. */
  lowerBound: PollingCost;
  /** Expected cost of polling every 5 s with this distribution. */
  everyFiveSeconds: PollingCost;
};

/**
 * `reschedule`: sets the poll time of a submission other than the one passed to the current call.
 */
export type PolicyFactory = (deps: {
  reschedule: (item: Candidate, dueAt: number) => void;
  random: () => number;
}) => PacingPolicy;

/**
 * Returns the longest time that a submission may be left unpolled: the time for which it has been
 * open, but at least the given interval and at most five times that interval. With 60 s:
 *
 *     age       0 to 60 s   2 min   5 min and more
 *     ceiling   60 s        2 min   5 min
 */
export function ceilingMs({ maxIntervalMs }: { maxIntervalMs: number }, ageMs: number): number {
  return Math.min(5 * maxIntervalMs, Math.max(maxIntervalMs, ageMs));
}
