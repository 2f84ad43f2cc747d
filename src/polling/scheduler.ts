import {
  type FinalizedHead,
  NEVER,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
} from '../pacing/index.ts';
import type { Observation } from '../submissions/classify.ts';
import type { Watched } from '../submissions/store-results.ts';
import { type BreakerState, isSeen } from '../submissions/upstream.ts';
import type { FoundFinal } from './detection.ts';
import {
  type BudgetSettings,
  Entry,
  type Paced,
  PollQueues,
  type Rating,
  RequestBudget,
} from './poll-queues.ts';
import { type BreakerSettings, UpstreamHealth } from './upstream-health.ts';

export type Outlook = {
  description: PacingDescription;
  budget: BudgetSettings & { used: number };
  /** Whether the budget or a pause delays the next poll. */
  isDelayed: boolean;
};

export type SchedulerSettings = {
  budget: BudgetSettings;
  breaker: BreakerSettings;
  /** The lease of a poll: without a result by then, the submission is polled again. */
  leaseMs: number;
  /** A finalized submission that stays scheduled is polled again after this time. */
  recheckMs: number;
};

type Deps = { settings: SchedulerSettings; policy: PolicyFactory; random: () => number };

/**
 * Decides which submissions of one upstream to poll now: the policy says when each is due, budget
 * and health how many may be sent. Performs no I/O and reads no clock. Times are epoch
 * milliseconds.
 */
export class Scheduler {
  readonly budget: RequestBudget;
  readonly health: UpstreamHealth;
  readonly leaseMs: number;
  readonly #settings: SchedulerSettings;
  readonly #policy: PacingPolicy;
  readonly #entries = new Map<string, Entry>();
  readonly #queues = new PollQueues((entry, now) => this.#rate(entry, now));
  /** In flight, and deleted on completion: removed, or polled only once. */
  readonly #toDelete = new Set<Entry>();
  /**
   * Not scheduled by the policy: entries to delete, held ones, and finalized ones that await their
   * recheck.
   */
  readonly #unregistered = new Set<Entry>();

  constructor(deps: Deps) {
    this.#settings = deps.settings;
    this.leaseMs = deps.settings.leaseMs;
    this.#policy = deps.policy({
      reschedule: (item, dueAt) => this.#queues.reschedule(item as Entry, dueAt),
      random: deps.random,
    });
    this.budget = new RequestBudget(deps.settings.budget);
    this.health = new UpstreamHealth(deps.settings.breaker, deps.random);
  }

  get size(): number {
    return this.#entries.size - this.#toDelete.size;
  }

  get inFlight(): number {
    return this.#queues.inFlight;
  }

  /** Returns what the policy has learned, for the next process; null: nothing. */
  snapshot(): string | null {
    return this.#policy.snapshot();
  }

  /** Must be called before submissions are added. */
  restore(learned: string): void {
    this.#policy.restore(learned);
  }

  /** Exhausts the budget if an earlier process, polling until `polledUntil`, may have used it. */
  resumeBudget(polledUntil: number, now: number): void {
    const { perMs } = this.budget.settings;
    if (now - polledUntil < perMs + this.leaseMs) this.budget.exhaust(now);
  }

  /** The clock was set forward, or the machine slept: ages and budget do not include that time. */
  skip(stepMs: number, now: number): void {
    this.budget.exhaust(now);
    for (const entry of this.#entries.values()) entry.skip(stepMs);
  }

  /** Number of polls that may be sent now; at most one, the probe, during an outage. */
  #available(now: number): number {
    const { isUp, pausedUntil, probeAt } = this.health;
    if (now < pausedUntil || (!isUp && now < probeAt)) return 0;
    const available = this.budget.available(now);
    return isUp ? available : Math.min(1, available);
  }

  /** Returns when a poll due at `dueAt` may be sent; Infinity: after one in flight. */
  #sendableAt(dueAt: number): number {
    const { isUp, pausedUntil, probeAt } = this.health;
    return Math.max(isUp ? dueAt : probeAt, pausedUntil, this.budget.availableAt());
  }

  /**
   * Until when no poll is sent: by a pause, the budget, or the next probe; -Infinity: none is
   * known.
   */
  get closedUntil(): number {
    const { pausedUntil, probeAt } = this.health;
    const times = [pausedUntil, probeAt, this.budget.availableAt()].filter(Number.isFinite);
    return Math.max(Number.NEGATIVE_INFINITY, ...times);
  }

  outlook(now: number): Outlook {
    return {
      description: this.#policy.describe(now),
      budget: { ...this.budget.settings, used: this.budget.used(now) },
      isDelayed: this.#isDelayed(now),
    };
  }

  /** Returns the send time of the newest poll that found it open; -Infinity: none. */
  openAt(submissionId: string): number {
    return this.#entries.get(submissionId)?.openAt ?? NEVER;
  }

  /**
   * Returns the expected lag (ms) of a poll that found it final; null: not known. Call before
   * `observe`.
   */
  lagOf(found: FoundFinal, now: number): number | null {
    const entry = this.#entries.get(found.submissionId);
    return entry && !this.#unregistered.has(entry) ? this.#policy.lagOf(entry, found, now) : null;
  }

  /** Returns the entry of a submission, unless its poll in flight is the only one. */
  find(submissionId: string): Entry | undefined {
    const entry = this.#entries.get(submissionId);
    return entry && !this.#toDelete.has(entry) ? entry : undefined;
  }

  /** Whether its next poll is its recheck, which an earlier one would replace, or the last one. */
  awaitsRecheck(submissionId: string): boolean {
    const entry = this.find(submissionId);
    return entry !== undefined && this.#unregistered.has(entry);
  }

  add(item: Paced, now: number): void {
    const existing = this.#entries.get(item.submissionId);
    if (existing) this.#retain(existing, item.trackedAt, now);
    else this.#register(this.#createEntry(item), null, now);
    this.health.add(item.submissionId, item.seen);
  }

  /** Schedules a stored submission as its state demands. */
  resume(item: Watched, now: number): void {
    // If the clock was ahead before, stored times may be in the future.
    const trackedAt = Math.min(item.trackedAt, now);
    const polledAt = item.polledAt === null ? null : Math.min(item.polledAt, now);
    const existing = this.#entries.get(item.submissionId);
    const entry = existing ?? this.#createEntry({ ...item, trackedAt });
    this.health.add(item.submissionId, item.seen);
    if (existing) this.#retain(existing, trackedAt, now);
    else this.#unregistered.add(entry);
    if (item.isHeld || item.finalizedAt !== null) {
      this.#unregister(entry, now);
      this.#queues.reschedule(entry, this.#recheckAt(item.finalizedAt, polledAt ?? now));
    } else if (this.#unregistered.delete(entry)) this.#register(entry, polledAt, now);
  }

  /** `finalizedAt` null: it is held, and its next poll is the last one, at its deadline. */
  #recheckAt(finalizedAt: number | null, from: number): number {
    const { recheckMs } = this.#settings;
    if (finalizedAt === null) return Number.POSITIVE_INFINITY;
    return from + Math.min(recheckMs, Math.max(0, finalizedAt + recheckMs - from));
  }

  /** Polls a submission once more by `at`, whatever the policy decides. */
  pollBy(submissionId: string, at: number): void {
    const entry = this.#entries.get(submissionId);
    if (entry) this.#queues.pollBy(entry, at);
  }

  /** Stops polling. A poll in flight counts until it completes or its lease expires. */
  remove(submissionId: string, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#unregister(entry, now);
    if (this.#queues.isInFlight(entry)) {
      this.#toDelete.add(entry);
    } else {
      this.#queues.remove(entry);
      this.#deleteEntry(entry);
    }
  }

  /**
   * Requests a poll of any submission: `sent`: the caller must send it (the budget is charged);
   * `wait`: none is available before `nextPollAt`.
   */
  pollNow(submissionId: string, now: number): 'sent' | 'in_flight' | 'wait' {
    this.#expireLeases(now);
    const existing = this.#entries.get(submissionId);
    if (existing && this.#queues.isInFlight(existing)) return 'in_flight';
    if (this.#available(now) === 0) return 'wait';
    this.#send(this.#entryOf(submissionId, now), now);
    return 'sent';
  }

  /** Returns when `pollNow` can return `sent`; Infinity: after a poll in flight. */
  nextPollAt(): number {
    return this.#sendableAt(Number.NEGATIVE_INFINITY);
  }

  /**
   * Returns at most `most` ids to poll now, by gain under a tight budget. Charges it; each poll is
   * in flight until its result or the end of its lease.
   */
  next(now: number, most = Number.POSITIVE_INFINITY): string[] {
    this.#expireLeases(now);
    const batch: string[] = [];
    while (batch.length < most) {
      const available = this.#available(now);
      if (available === 0) break;
      const entry = this.#nextTest(now) ?? this.#nextDue(available, now);
      if (!entry) break;
      this.#send(entry, now);
      batch.push(entry.submissionId);
    }
    return batch;
  }

  /**
   * Returns until when to wait for a poll that is in flight or requested by `pollBy`; -Infinity:
   * there is none. `patienceMs`: how long an outage or a pause may last.
   */
  awaitedUntil(submissionId: string, now: number, patienceMs: number): number {
    const entry = this.#entries.get(submissionId);
    if (!entry) return NEVER;
    if (this.#queues.isInFlight(entry)) return entry.dueAt;
    if (!this.#queues.mustPoll(entry, now)) return NEVER;
    const { isUp, since, pausedSince, pausedUntil } = this.health;
    const isPaused = now < pausedUntil;
    if (isUp && !isPaused) return Number.POSITIVE_INFINITY;
    const closedSince = isUp ? pausedSince : isPaused ? Math.min(since, pausedSince) : since;
    return closedSince + patienceMs;
  }

  wakeAt(): number {
    const { earliest, earliestLease } = this.#queues;
    const leaseEnds = earliestLease?.dueAt ?? Number.POSITIVE_INFINITY;
    const dueAt = earliest?.dueAt ?? Number.POSITIVE_INFINITY;
    return Math.min(
      leaseEnds,
      this.#sendableAt(this.health.isTestDue ? Number.NEGATIVE_INFINITY : dueAt),
    );
  }

  /**
   * Learns from an observation and schedules the next poll; deletes the submission unless
   * `watched`. Returns the new state of the circuit breaker; null: unchanged.
   */
  observe(observation: Observation, watched: boolean, now: number): BreakerState | null {
    const entry = this.#entries.get(observation.submissionId);
    const changed = this.health.observe(observation, entry?.seen ?? false, now);
    if (!entry) return changed;
    this.#endPoll(entry, now);
    const recheckAt = now + this.#settings.recheckMs;
    const dueAt = this.#unregistered.has(entry)
      ? recheckAt
      : this.#policy.learn(entry, observation, now);
    if (isSeen(observation)) entry.seen = true;
    if (observation.kind === 'finalized' || !watched) this.#unregister(entry, now);
    if (!watched || this.#toDelete.has(entry)) {
      this.#deleteEntry(entry);
      return changed;
    }
    this.#queues.schedule(entry, observation.kind === 'finalized' ? recheckAt : dueAt);
    return changed;
  }

  /** Passes a finalized block of the chain to the policy. The caller wakes the poll loop. */
  observeHead(head: FinalizedHead, now: number): void {
    this.#policy.observeHead(head, now);
  }

  /** Schedules another poll at `dueAt`, because the result could not be stored. */
  retry(submissionId: string, dueAt: number, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#endPoll(entry, now);
    if (this.#toDelete.has(entry)) this.#deleteEntry(entry);
    else this.#queues.schedule(entry, dueAt);
  }

  /** Schedules a submission whose entry would be deleted when the poll in flight completes. */
  #retain(existing: Entry, trackedAt: number, now: number): void {
    if (!this.#toDelete.delete(existing)) return;
    this.#unregistered.delete(existing);
    existing.restart(trackedAt);
    this.#policy.register(existing, { polledAt: null }, now);
  }

  #register(entry: Entry, polledAt: number | null, now: number): void {
    this.#queues.schedule(entry, this.#policy.register(entry, { polledAt }, now));
  }

  #unregister(entry: Entry, now: number): void {
    if (this.#unregistered.has(entry)) return;
    this.#policy.unregister(entry, now);
    this.#unregistered.add(entry);
  }

  /**
   * Returns the control or the probe to send now, due or not. A poll of it in flight is the test.
   */
  #nextTest(now: number): Entry | undefined {
    if (!this.health.isTestDue) return undefined;
    const test = this.health.nextTest(this.#mayTest, this.#queues.earliest?.submissionId);
    const entry = this.#entryOf(test.submissionId, now);
    this.health.testing(test);
    if (!this.#queues.isInFlight(entry)) return entry;
    if (!this.health.isUp) this.health.probing(now);
    return undefined;
  }

  /** Not in flight. A poll of a finalized submission would replace its recheck. */
  readonly #mayTest = (submissionId: string): boolean => {
    const entry = this.#entries.get(submissionId);
    return !entry || !(this.#queues.isInFlight(entry) || this.#unregistered.has(entry));
  };

  /**
   * Returns the due entry to poll, which stays in its queue. `available`: polls that the budget
   * allows.
   */
  #nextDue(available: number, now: number): Entry | undefined {
    if (!this.health.isUp) return undefined;
    for (;;) {
      const entry = this.#queues.due(available, now);
      if (!entry) return undefined;
      const isFixed = this.#unregistered.has(entry) || this.#queues.mustPoll(entry, now);
      const at = isFixed ? now : this.#policy.confirm(entry, now);
      if (at <= now + 1) return entry;
      this.#queues.schedule(entry, at);
    }
  }

  #rate(entry: Entry, now: number): Rating {
    if (this.#unregistered.has(entry)) return { gain: 0, isOverdue: true };
    return {
      gain: this.#policy.gain(entry, now),
      isOverdue: this.#policy.isOverdue(entry, now),
    };
  }

  #isDelayed(now: number): boolean {
    const dueAt = Math.max(now, this.#queues.earliest?.dueAt ?? Number.POSITIVE_INFINITY);
    return Math.max(this.health.pausedUntil, this.budget.availableAt()) > dueAt;
  }

  /** Makes submissions without a result due again, without priority over others. */
  #expireLeases(now: number): void {
    for (
      let entry = this.#queues.earliestLease;
      entry && entry.dueAt <= now;
      entry = this.#queues.earliestLease
    ) {
      this.#endPoll(entry, now);
      if (this.#toDelete.has(entry)) this.#deleteEntry(entry);
      else this.#queues.schedule(entry, now);
    }
  }

  /** Returns the entry of a submission; of one that is not scheduled for one poll. */
  #entryOf(submissionId: string, now: number): Entry {
    const existing = this.#entries.get(submissionId);
    if (existing) return existing;
    const seen = this.health.hasReturned(submissionId);
    const entry = this.#createEntry({ submissionId, trackedAt: now, seen });
    this.#toDelete.add(entry);
    this.#unregistered.add(entry);
    return entry;
  }

  #createEntry(item: Paced): Entry {
    const entry = new Entry(item);
    this.#entries.set(item.submissionId, entry);
    return entry;
  }

  #send(entry: Entry, now: number): void {
    this.#queues.lease(entry, now, this.#settings.leaseMs);
    this.budget.send();
    if (!this.health.isUp) this.health.probing(now);
  }

  #endPoll(entry: Entry, now: number): void {
    this.health.ended(entry.submissionId);
    if (this.#queues.release(entry)) this.budget.complete(now);
  }

  #deleteEntry(entry: Entry): void {
    this.#entries.delete(entry.submissionId);
    this.#toDelete.delete(entry);
    this.#unregistered.delete(entry);
  }
}
