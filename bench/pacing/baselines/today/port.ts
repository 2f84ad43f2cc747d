/**
 * An open submission. The scheduler writes `dueAt`, the policy `order` and `openAt`, which are here
 * to save an object for each of up to a million.
 */
export type Candidate = {
  readonly trackedAt: number;
  /** The next poll time or, in flight, the time at which the lease expires; epoch ms. */
  readonly dueAt: number;
  order: number;
  /** Send time of the newest poll that found it open, epoch ms; NEVER before the first. */
  openAt: number;
};

/** `at`: arrival of the response, epoch ms. Kinds of the last line say nothing about finality. */
export type PollResult = { at: number; durationMs: number } & (
  | { kind: 'finalized'; blockNumber: number | null }
  | { kind: 'pending' | 'error' | 'not_found' }
  | { kind: 'rejected' | 'unauthorized' | 'throttled' | 'unavailable' }
);

/** Every block up to `number` is final. `at`: when the node announced it, epoch ms. */
export type FinalizedHead = { number: number; at: number };

export const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Decides when each submission of one upstream is polled; the scheduler handles budget, outages and
 * leases. Performs no I/O and reads no clock. Times are epoch milliseconds.
 */
export type PacingPolicy = {
  /** Adds a submission that is new or was last polled at `polledAt`. Returns its next poll time. */
  register(item: Candidate, known: { polledAt: number | null }, now: number): number;
  /** Returns the expected lag (ms) of a final found at `at`; null: unknown. Call before `learn`. */
  lagOf(
    item: Candidate,
    result: { blockNumber: number | null; at: number },
    now: number,
  ): number | null;
  /** Learns from a poll. Returns the next poll time, which is ignored for a final submission. */
  learn(item: Candidate, result: PollResult, now: number): number;
  /** Heads may arrive twice, late, out of order and with gaps, and may be wrong. */
  observeHead(head: FinalizedHead, now: number): void;
  /** Returns the poll time of a due submission: now, or later if the state has changed. */
  confirm(item: Candidate, now: number): number;
  /** Returns the probability of finality now. Under a tight budget, the highest is polled first. */
  gain(item: Candidate, now: number): number;
  unregister(item: Candidate, now: number): void;
  /** Returns the learned state, to be stored across restarts; null if the policy learns nothing. */
  snapshot(): string | null;
  /** Continues with a snapshot of any age. Ignores an invalid one. */
  restore(learned: string): void;
  describe(now: number): PacingDescription;
  reasonOf(item: Candidate, now: number): PolicyReason;
};

/**
 * `slot`: likely to become final in the slot of the poll. `head`: a block that is likely to contain
 * it was announced. `scout`: polled on behalf of others. `age`: no slots are known. `net`: the
 * safety net.
 */
export type PolicyReason = 'slot' | 'head' | 'scout' | 'age' | 'net';

/** Requests per submission, and mean seconds between finality and the poll that finds it. */
export type PollingCost = { requests: number; lagS: number };

/** What the policy has learned. Durations are milliseconds and begin at tracking. */
export type PacingDescription = {
  /** `heads`: a node announces final blocks. `slots`: of the chain. `age`: nothing periodic. */
  mode: 'heads' | 'slots' | 'age';
  /** null: no slots are known. `nextEventAt`: median of the next finality of a group, epoch ms. */
  slot: { periodMs: number; nextEventAt: number; emptyShare: number } | null;
  /** Estimated number of serial senders of the upstream; null: all submissions are sent at once. */
  senders: number | null;
  observed: number;
  /** Requests that one second of lag is worth. */
  lagPrice: number;
  /** Probability of being final at each time after tracking; not decreasing, 50 to 400 points. */
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

/** `reschedule`: sets the poll time of another submission than that of the current call. */
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
