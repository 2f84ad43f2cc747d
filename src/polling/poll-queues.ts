import { type Due, DueQueue } from '../lib/due-queue.ts';
import { type Candidate, NEVER } from '../pacing/index.ts';

/** At most `requests` in any `perMs`, at most `concurrency` at once. */
export type BudgetSettings = {
  requests: number;
  perMs: number;
  concurrency: number;
};

/**
 * An exact sliding window. A request counts from its start until `perMs` after its completion or
 * timeout. The upstream never counts more, wherever its window begins, unless it reads a request
 * later.
 */
export class RequestBudget {
  readonly #settings: BudgetSettings;
  /** When completed requests stop counting: a ring, the oldest at #oldest. */
  readonly #countsUntil: Float64Array;
  #oldest = 0;
  #completed = 0;
  #inFlight = 0;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#countsUntil = new Float64Array(settings.requests);
  }

  get settings(): BudgetSettings {
    return this.#settings;
  }

  available(now: number): number {
    const { requests, concurrency } = this.#settings;
    return Math.max(0, Math.min(concurrency - this.#inFlight, requests - this.used(now)));
  }

  used(now: number): number {
    while (this.#completed > 0 && this.#countedUntil(0) <= now) {
      this.#oldest = (this.#oldest + 1) % this.#countsUntil.length;
      this.#completed--;
    }
    return this.#inFlight + this.#completed;
  }

  /** Returns Infinity if a request in flight must complete first. */
  availableAt(): number {
    const { requests, concurrency } = this.#settings;
    if (this.#inFlight >= concurrency) return Number.POSITIVE_INFINITY;
    const excess = this.#inFlight + this.#completed - requests;
    if (excess < 0) return Number.NEGATIVE_INFINITY;
    if (excess >= this.#completed) return Number.POSITIVE_INFINITY;
    return this.#countedUntil(excess);
  }

  send(): void {
    this.#inFlight++;
  }

  complete(now: number): void {
    this.#inFlight--;
    this.#count(now);
  }

  /** Exhausts the budget, because the number of requests of an earlier process is unknown. */
  exhaust(now: number): void {
    while (this.used(now) < this.#settings.requests) this.#count(now);
  }

  /** A completion that reads `now` may be 1 ms later, because the clock rounds down. */
  #count(now: number): void {
    const ring = this.#countsUntil;
    ring[(this.#oldest + this.#completed) % ring.length] = now + 1 + this.#settings.perMs;
    this.#completed++;
  }

  /** Until when the completed request at this place counts; 0 is the oldest. */
  #countedUntil(place: number): number {
    return this.#countsUntil[(this.#oldest + place) % this.#countsUntil.length] ?? 0;
  }
}

/** A submission to schedule. `trackedAt`: epoch ms. `seen`: the upstream has returned it before. */
export type Paced = { submissionId: string; trackedAt: number; seen: boolean };

/**
 * Waits until `dueAt`, or is in flight with a lease that expires then. Rare properties are stored
 * elsewhere: there can be a million entries.
 */
export class Entry implements Paced, Due, Candidate {
  readonly submissionId: string;
  seen: boolean;
  heapIndex = 0;
  order = 0;
  readonly #times: Float64Array;
  readonly #at: number;

  constructor({ submissionId, trackedAt, seen }: Paced) {
    this.submissionId = submissionId;
    this.seen = seen;
    this.#at = allocateTimes();
    this.#times = times;
    this.dueAt = trackedAt;
    this.restart(trackedAt);
  }

  /** Resets the entry when it is tracked again. In flight, it keeps its lease. */
  restart(trackedAt: number): void {
    this.#times[this.#at + TRACKED] = trackedAt;
    this.openAt = NEVER;
  }

  /** Takes a step of the clock out of its age. It is due no later. */
  skip(stepMs: number): void {
    this.#times[this.#at + TRACKED] = this.trackedAt + stepMs;
    this.openAt += stepMs;
  }

  get trackedAt(): number {
    return this.#times[this.#at + TRACKED] as number;
  }

  get dueAt(): number {
    return this.#times[this.#at + DUE] as number;
  }

  set dueAt(dueAt: number) {
    this.#times[this.#at + DUE] = dueAt;
  }

  get openAt(): number {
    return this.#times[this.#at + OPEN] as number;
  }

  set openAt(openAt: number) {
    this.#times[this.#at + OPEN] = openAt;
  }
}

const TRACKED = 0;
const DUE = 1;
const OPEN = 2;
const COLUMNS = 3;
/** Few, because one remaining entry keeps its whole block of 6 KiB in memory. */
const ENTRIES_PER_BLOCK = 256;

/**
 * The times of the newest block of entries: 8 bytes each instead of 24 as a property, a tenth of
 * the row "memory of the process with 1,000,000 tracked" in docs/performance.md.
 */
let times = new Float64Array(0);
let taken = 0;

function allocateTimes(): number {
  if (taken === times.length) {
    times = new Float64Array(COLUMNS * ENTRIES_PER_BLOCK);
    taken = 0;
  }
  taken += COLUMNS;
  return taken - COLUMNS;
}

/** Maximum number of due polls that are compared. Further ones wait in the due queue. */
const MAX_COMPARED = 256;
/** A rating expires after this time, because the gain of a poll changes while the poll waits. */
const RATING_MS = 1_000;

/** `gain`: probability of finality. `isOverdue`: the longest time without a poll has passed. */
export type Rating = { gain: number; isOverdue: boolean };

/**
 * The due polls. Under a tight budget, by descending gain, but every second request goes to the
 * longest due overdue submission, so that none starves.
 */
export class Backlog {
  /** In the order of the due times. null: not rated yet. */
  readonly #entries = new Map<Entry, (Rating & { ratedAt: number }) | null>();
  readonly #rate: (entry: Entry, now: number) => Rating;
  #lastWasOverdue = false;

  constructor(rate: (entry: Entry, now: number) => Rating) {
    this.#rate = rate;
  }

  get size(): number {
    return this.#entries.size;
  }

  get isFull(): boolean {
    return this.#entries.size >= MAX_COMPARED;
  }

  get longestDue(): Entry | undefined {
    for (const entry of this.#entries.keys()) return entry;
    return undefined;
  }

  add(entry: Entry): void {
    this.#entries.set(entry, null);
  }

  remove(entry: Entry): boolean {
    return this.#entries.delete(entry);
  }

  /** Removes an entry that is polled now, and counts it. Returns whether it was in the backlog. */
  take(entry: Entry): boolean {
    const rating = this.#entries.get(entry);
    if (rating) this.#lastWasOverdue = rating.isOverdue;
    return this.#entries.delete(entry);
  }

  best(now: number): Entry | undefined {
    let best: Entry | undefined;
    let bestGain = Number.NEGATIVE_INFINITY;
    let overdue: Entry | undefined;
    for (const [entry, existing] of this.#entries) {
      let rating = existing;
      if (!rating || Math.abs(now - rating.ratedAt) >= RATING_MS) {
        rating = { ...this.#rate(entry, now), ratedAt: now };
        this.#entries.set(entry, rating);
      }
      if (rating.isOverdue) overdue ??= entry;
      if (rating.gain > bestGain) [best, bestGain] = [entry, rating.gain];
    }
    return (this.#lastWasOverdue ? undefined : overdue) ?? best;
  }
}

/**
 * Each entry is in exactly one queue: waiting (not due), backlog (due) or leased (in flight, until
 * completion or expiry).
 */
export class PollQueues {
  readonly #waiting = new DueQueue<Entry>();
  readonly #backlog: Backlog;
  readonly #leased = new DueQueue<Entry>();
  /** Latest poll times of some entries, which limit their due times. */
  readonly #pollBy = new WeakMap<Entry, number>();

  /** `rate` compares the due polls while the request budget does not allow all of them. */
  constructor(rate: (entry: Entry, now: number) => Rating) {
    this.#backlog = new Backlog(rate);
  }

  get inFlight(): number {
    return this.#leased.size;
  }

  isInFlight(entry: Entry): boolean {
    return this.#leased.has(entry);
  }

  /** The entry with the earliest due time that is not in flight. */
  get earliest(): Entry | undefined {
    return this.#backlog.longestDue ?? this.#waiting.earliest;
  }

  get earliestLease(): Entry | undefined {
    return this.#leased.earliest;
  }

  /**
   * Returns the due entry to poll, which stays in its queue. `available`: polls that the budget
   * allows.
   */
  due(available: number, now: number): Entry | undefined {
    for (
      let due = this.#waiting.earliest;
      due && due.dueAt <= now && !this.#backlog.isFull;
      due = this.#waiting.earliest
    ) {
      this.#waiting.remove(due);
      this.#backlog.add(due);
    }
    return this.#backlog.size > available ? this.#backlog.best(now) : this.#backlog.longestDue;
  }

  schedule(entry: Entry, dueAt: number): void {
    this.remove(entry);
    entry.dueAt = Math.min(dueAt, this.#pollBy.get(entry) ?? dueAt);
    this.#waiting.add(entry);
  }

  reschedule(entry: Entry, dueAt: number): void {
    if (!this.isInFlight(entry)) this.schedule(entry, dueAt);
  }

  /** Makes an entry due at `at` at the latest, until its first poll at or after `at`. */
  pollBy(entry: Entry, at: number): void {
    this.#pollBy.set(entry, at);
    this.reschedule(entry, entry.dueAt);
  }

  mustPoll(entry: Entry, now: number): boolean {
    return (this.#pollBy.get(entry) ?? Number.POSITIVE_INFINITY) <= now;
  }

  remove(entry: Entry): void {
    if (!this.#backlog.remove(entry) && this.#waiting.has(entry)) this.#waiting.remove(entry);
  }

  lease(entry: Entry, now: number, leaseMs: number): void {
    if (this.mustPoll(entry, now)) this.#pollBy.delete(entry);
    if (!this.#backlog.take(entry)) this.remove(entry);
    entry.dueAt = now + leaseMs;
    this.#leased.add(entry);
  }

  /** Removes an entry from its queue. Returns whether it was in flight. */
  release(entry: Entry): boolean {
    const wasInFlight = this.#leased.has(entry);
    if (wasInFlight) this.#leased.remove(entry);
    else this.remove(entry);
    return wasInFlight;
  }
}
