import type { Observation } from './classify.ts';

/**
 * An open submission as a policy sees it. The pacer owns `dueAt`; the other fields are the policy's own notes, kept here
 * because a million submissions have no room for a second object each.
 */
export type Candidate = {
  readonly trackedAt: number;
  /** When it is asked about next, or, while it is in flight, when its answer counts as lost. */
  readonly dueAt: number;
  before: Candidate | null;
  after: Candidate | null;
  /** Its place in the order of tracking; 0: it stands in no line. */
  order: number;
  /**
   * When the newest question was sent that found it not final; NEVER at first. Not to be rounded: a sweep is sent at the very
   * moment of the answer that began it, and whoever it finds open must count as asked since.
   */
  openAt: number;
};

export const NEVER = Number.NEGATIVE_INFINITY;

/**
 * Decides when each submission of one upstream is asked about. The pacer tells it everything that is answered; budget,
 * outages and lost answers are the pacer's own. Pure: time and randomness come from outside. Times are epoch milliseconds.
 */
export type PacingPolicy = {
  /** A submission is new, or resumed after a restart with its last answer at `polledAt`. Returns when to ask about it. */
  enrol(item: Candidate, known: { polledAt: number | null }, now: number): number;
  /** An answer about it came. Returns when to ask about it again, if that is still wanted. */
  learn(item: Candidate, observation: Observation, now: number): number;
  /** Nobody asks about it any more. */
  leave(item: Candidate, now: number): void;
  /** What it knows about the upstream, to be kept over a restart; and what one before it knew, however old. */
  learned(): string | null;
  recall(learned: string): void;
  /** Until then this block was not final, as far as it knows; null: nothing is known. */
  finalAfter(block: number): number | null;
  /** What it knows, and how it asks by that. */
  describe(now: number): PacingDescription;
  /** Why this one is asked about when it is. */
  why(item: Candidate, now: number): PolicyReason;
};

/**
 * `scout`: one of the first in line, at the next block. `sweep`: its neighbour was found final. `alone`: the order tells
 * nothing about it, so it is asked by itself, at blocks. `doubt`: between two blocks, to see whether it is they that make
 * final. `net`: it was left alone for the longest time allowed. `age`: by its age, because the clock is not known.
 */
export type PolicyReason = 'scout' | 'sweep' | 'alone' | 'doubt' | 'net' | 'age';

export type PacingDescription = {
  /** `by_age`: the clock is not known. `clock_only`: it is, but the order of tracking tells nothing. */
  mode: 'cohorts' | 'clock_only' | 'by_age';
  /** How often a block becomes final, and when the next one does; null while that is not known. */
  periodMs: number | null;
  next: { from: number; until: number } | null;
  /** Nobody has become final younger; 0 while that is not known. */
  leastAgeMs: number;
  /** How many become final at once, on average. */
  groupSize: number;
  inLine: number;
  /** How many at the head of the line are asked about at every block. */
  scouts: number;
  /** How often somebody is overtaken rather than final in turn, 0 to 1. */
  disorder: number;
};

/** `move`: another submission than the one in hand is to be asked about at another time. */
export type PolicyFactory = (deps: {
  move: (item: Candidate, dueAt: number) => void;
  random: () => number;
}) => PacingPolicy;
