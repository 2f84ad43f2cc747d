import type { Observation } from '../domain/classify.ts';
import { type BreakerState, healthOf, isSeen } from '../domain/upstream-health.ts';
import { Backlog, type Rating } from './backlog.ts';
import { type BreakerSettings, CircuitBreaker } from './circuit-breaker.ts';
import { DueQueue } from './due-queue.ts';
import { Entry, type Paced, type Watched } from './entry.ts';
import { Pause } from './pause.ts';
import { NEVER, type PacingDescription, type PacingPolicy, type PolicyFactory, type PolicyReason } from './policy.ts';
import { ProbeCandidates } from './probe-candidates.ts';
import { type BudgetSettings, RequestBudget } from './request-budget.ts';

export type SchedulerSettings = {
  budget: BudgetSettings;
  breaker: BreakerSettings;
  /** A batch without an answer for so long is lost, and its submissions are asked about again. */
  leaseMs: number;
  /** A finalized submission that stays watched is asked about again after this. */
  recheckMs: number;
};

/** What is asked about next, and when; `at` null: once an answer has come. `heldBy`: why not when it is due. */
export type NextPoll = {
  submissionId: string;
  at: number | null;
  reason: PolicyReason | 'recheck' | 'probe';
  heldBy: 'pause' | 'budget' | null;
};

/** How an upstream is asked now. */
export type Outlook = {
  description: PacingDescription;
  budget: BudgetSettings & { used: number };
  next: NextPoll | null;
};

/**
 * The brain of one upstream: which submissions to ask about next, and how many at all. It owns the request budget and the
 * breaker, so both hold however many hands do the asking. Pure: no I/O, no clock of its own, nothing kept outside memory.
 */
export class Scheduler {
  readonly #settings: SchedulerSettings;
  readonly #policy: PacingPolicy;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new DueQueue<Entry>();
  /** Those that were due when `next` was called last, and are not in flight yet. */
  readonly #backlog = new Backlog((entry, now) => this.#rate(entry, now));
  readonly #leased = new DueQueue<Entry>();
  readonly #probeCandidates = new ProbeCandidates();
  readonly #budget: RequestBudget;
  readonly #pause = new Pause();
  readonly #breaker: CircuitBreaker;
  /** In flight, and forgotten with their answers, because they were removed or are asked about only this once. */
  readonly #toDelete = new Set<Entry>();
  /** The policy decides about all but these: they are passing, or finalized and waiting for their recheck. */
  readonly #unregistered = new Set<Entry>();

  constructor(deps: { settings: SchedulerSettings; policy: PolicyFactory; random: () => number }) {
    this.#settings = deps.settings;
    this.#policy = deps.policy({
      reschedule: (item, dueAt) => this.#reschedule(item as Entry, dueAt),
      random: deps.random,
    });
    this.#budget = new RequestBudget(deps.settings.budget);
    this.#breaker = new CircuitBreaker(deps.settings.breaker, deps.random);
  }

  get size(): number {
    return this.#entries.size - this.#toDelete.size;
  }

  get inFlight(): number {
    return this.#leased.size;
  }

  /** After this an answer counts as lost. */
  get leaseMs(): number {
    return this.#settings.leaseMs;
  }

  /** What the policy has learned, as the ledger keeps it. */
  snapshot(): string | null {
    return this.#policy.snapshot();
  }

  /** Goes on with what a process before this one learned; before anything is added. */
  restore(learned: string): void {
    this.#policy.restore(learned);
  }

  outlook(now: number): Outlook {
    const used = this.#budget.used(now);
    return {
      description: this.#policy.describe(now),
      budget: { ...this.#settings.budget, used },
      next: this.#nextPoll(now),
    };
  }

  /** When the newest question was sent that found it open; -Infinity: none did. Forgotten once it is no longer watched. */
  openAt(submissionId: string): number {
    return this.#entries.get(submissionId)?.openAt ?? NEVER;
  }

  get breaker(): Pick<CircuitBreaker, 'state' | 'isOpen' | 'openedAt' | 'probeAt'> {
    return this.#breaker;
  }

  /** Until then nothing is sent, because the upstream asked for it; -Infinity: it never has. */
  get pausedUntil(): number {
    return this.#pause.until;
  }

  /** Continues a pause that an earlier process was asked for. */
  restorePause(until: number): void {
    this.#pause.restore(until);
  }

  /** Whether the upstream has shown a submission that is polled. */
  hasSeen(submissionId: string): boolean {
    return this.#entries.get(submissionId)?.seen ?? false;
  }

  /** Whether it is finalized and is to be polled once more, later: a poll before that would take its place. */
  awaitsRecheck(submissionId: string): boolean {
    const entry = this.#entries.get(submissionId);
    return entry !== undefined && this.#unregistered.has(entry) && !this.#toDelete.has(entry);
  }

  /** Takes up an outage that a process before this one saw begin. */
  restoreOutage(state: BreakerState, openedAt: number, now: number): void {
    this.#breaker.restore(state, openedAt, now);
  }

  /** Treats the budget as spent if a process before this one, which asked until then, may have spent it. */
  resumeBudget(askedUntil: number, now: number): void {
    const { budget, leaseMs } = this.#settings;
    if (now - askedUntil < budget.perMs + leaseMs) this.#budget.exhaust(now);
  }

  add(item: Paced, now: number): void {
    const known = this.#entries.get(item.submissionId);
    if (known) this.#retain(known, now);
    else this.#register(this.#createEntry(item), null, now);
  }

  /** Goes on with a submission where a process before this one stopped. */
  resume(item: Watched, now: number): void {
    const known = this.#entries.get(item.submissionId);
    if (known) {
      this.#retain(known, now);
      return;
    }
    // A clock that was ahead left times that are still to come.
    const polledAt = item.polledAt === null ? null : Math.min(item.polledAt, now);
    const entry = this.#createEntry({ ...item, trackedAt: Math.min(item.trackedAt, now) });
    if (item.finalizedAt === null) {
      this.#register(entry, polledAt, now);
    } else {
      this.#unregistered.add(entry);
      this.#enqueue(entry, this.#recheckAt(item.finalizedAt, polledAt ?? now));
    }
  }

  /** Asks no more about it. One in flight keeps its place in the concurrency until its answer comes. */
  remove(submissionId: string, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#unregister(entry, now);
    if (this.#leased.has(entry)) {
      this.#toDelete.add(entry);
    } else {
      this.#dequeue(entry);
      this.#deleteEntry(entry);
    }
  }

  /**
   * A question out of turn, about any submission. `sent`: it has its place in the budget, ask now. `in_flight`: it is in
   * flight already. `wait`: there is no place now; see `askAt`.
   */
  pollNow(submissionId: string, now: number): 'sent' | 'in_flight' | 'wait' {
    this.#expireLeases(now);
    const known = this.#entries.get(submissionId);
    if (known && this.#leased.has(known)) return 'in_flight';
    if (this.#available(now) === 0) return 'wait';
    const entry = known ?? this.#createEntry({ submissionId, trackedAt: now, seen: false });
    if (known) {
      this.#dequeue(known);
    } else {
      this.#toDelete.add(entry);
      this.#unregistered.add(entry);
    }
    this.#send(entry, now);
    return 'sent';
  }

  /** The earliest moment at which there can be a place for a question out of turn; Infinity if that takes an answer. */
  nextPollAt(): number {
    const probeAt = this.#breaker.isOpen ? this.#breaker.probeAt : Number.NEGATIVE_INFINITY;
    return Math.max(this.#pause.until, probeAt, this.#budget.availableAt());
  }

  /**
   * The ids to poll now, `most` at most; if more are due than the budget has room for, those with the highest gain. They
   * take places in the budget and are in flight until observed, or lost after the lease.
   */
  next(now: number, most = Number.POSITIVE_INFINITY): string[] {
    this.#expireLeases(now);
    const batch: string[] = [];
    while (batch.length < most) {
      const room = this.#available(now);
      const entry = room === 0 ? undefined : this.#breaker.isOpen ? this.#nextProbe() : this.#nextDue(room, now);
      if (!entry) break;
      if (!this.#backlog.take(entry)) this.#waiting.remove(entry);
      this.#send(entry, now);
      batch.push(entry.submissionId);
    }
    return batch;
  }

  /** The earliest moment at which `next` can give anything, if nothing is added or observed before. */
  wakeAt(): number {
    const leaseEnds = this.#leased.earliest?.dueAt ?? Number.POSITIVE_INFINITY;
    const waiting = this.#earliest();
    if (!waiting) return leaseEnds;
    const dueAt = this.#breaker.isOpen ? this.#breaker.probeAt : waiting.dueAt;
    return Math.min(leaseEnds, Math.max(dueAt, this.#pause.until, this.#budget.availableAt()));
  }

  /**
   * Learns from an answer: when to ask about this submission again, and how the upstream is.
   * Returns the breaker's new state if the answer changed it.
   */
  observe(observation: Observation, watched: boolean, now: number): BreakerState | null {
    this.#pause.observe(observation, now);
    const entry = this.#entries.get(observation.submissionId);
    const seenBefore = entry?.seen ?? false;
    const changed = this.#breaker.observe(
      healthOf(observation, { seenBefore, seenAny: this.#probeCandidates.hasAny }),
      now,
    );
    if (!entry) return changed;
    this.#endPoll(entry, now);
    const recheckAt = now + this.#settings.recheckMs;
    const dueAt = this.#unregistered.has(entry) ? recheckAt : this.#policy.learn(entry, observation, now);
    if (observation.kind === 'finalized' || !watched) this.#unregister(entry, now);
    if (!watched || this.#toDelete.has(entry)) {
      this.#deleteEntry(entry);
      return changed;
    }
    if (isSeen(observation)) this.#probeCandidates.markSeen(entry);
    this.#enqueue(entry, observation.kind === 'finalized' ? recheckAt : dueAt);
    return changed;
  }

  /** Asks about a submission again at `dueAt`, because its answer could not be kept. */
  retry(submissionId: string, dueAt: number, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#endPoll(entry, now);
    if (this.#toDelete.has(entry)) this.#deleteEntry(entry);
    else this.#enqueue(entry, dueAt);
  }

  /** Its answer may be on the way to somebody else: from then on it waits like the others. */
  #retain(known: Entry, now: number): void {
    if (!this.#toDelete.delete(known)) return;
    this.#unregistered.delete(known);
    this.#policy.register(known, { polledAt: null }, now);
  }

  #register(entry: Entry, polledAt: number | null, now: number): void {
    this.#enqueue(entry, this.#policy.register(entry, { polledAt }, now));
  }

  #unregister(entry: Entry, now: number): void {
    if (this.#unregistered.has(entry)) return;
    this.#policy.unregister(entry, now);
    this.#unregistered.add(entry);
  }

  /** What is in flight comes back by itself. */
  #reschedule(entry: Entry, dueAt: number): void {
    if (this.#leased.has(entry)) return;
    this.#dequeue(entry);
    this.#enqueue(entry, dueAt);
  }

  #recheckAt(finalizedAt: number, now: number): number {
    return now + Math.min(this.#settings.recheckMs, Math.max(0, finalizedAt + this.#settings.recheckMs - now));
  }

  #available(now: number): number {
    if (now < this.#pause.until) return 0;
    if (!this.#breaker.isOpen) return this.#budget.available(now);
    return now < this.#breaker.probeAt ? 0 : Math.min(1, this.#budget.available(now));
  }

  /**
   * Due or not: an outage must not last longer than it does. One that the upstream has shown lately tells more than one
   * that may be odd itself.
   */
  #nextProbe(): Entry | undefined {
    return this.#probeCandidates.pick(this.#leased) ?? this.#earliest();
  }

  /** The entry to poll now, where the budget has room for `room` polls; it stays in its queue. */
  #nextDue(room: number, now: number): Entry | undefined {
    for (;;) {
      for (
        let due = this.#waiting.earliest;
        due && due.dueAt <= now && !this.#backlog.isFull;
        due = this.#waiting.earliest
      ) {
        this.#waiting.remove(due);
        this.#backlog.add(due);
      }
      const entry = this.#backlog.size > room ? this.#backlog.best(now) : this.#backlog.longestDue;
      if (!entry) return undefined;
      const at = this.#unregistered.has(entry) ? now : this.#policy.confirm(entry, now);
      if (at <= now + 1) return entry;
      this.#dequeue(entry);
      this.#enqueue(entry, at);
    }
  }

  #rate(entry: Entry, now: number): Rating {
    if (this.#unregistered.has(entry)) return { gain: 0, isOverdue: true };
    return { gain: this.#policy.gain(entry, now), isOverdue: this.#policy.reasonOf(entry, now) === 'net' };
  }

  #earliest(): Entry | undefined {
    return this.#backlog.longestDue ?? this.#waiting.earliest;
  }

  #dequeue(entry: Entry): void {
    if (!this.#backlog.remove(entry)) this.#waiting.remove(entry);
  }

  #nextPoll(now: number): NextPoll | null {
    const isOut = this.#breaker.isOpen;
    const entry = isOut ? this.#nextProbe() : (this.#backlog.best(now) ?? this.#waiting.earliest);
    if (!entry) return null;
    const dueAt = Math.max(now, isOut ? this.#breaker.probeAt : entry.dueAt);
    const placeAt = this.#budget.availableAt();
    const at = Math.max(dueAt, this.#pause.until, placeAt);
    const own = this.#unregistered.has(entry) ? 'recheck' : this.#policy.reasonOf(entry, now);
    return {
      submissionId: entry.submissionId,
      at: at === Number.POSITIVE_INFINITY ? null : at,
      reason: isOut ? 'probe' : own,
      heldBy: at === dueAt ? null : at === placeAt ? 'budget' : 'pause',
    };
  }

  /** A lost one has no place before the others: it is due now, like they are. */
  #expireLeases(now: number): void {
    for (let entry = this.#leased.earliest; entry && entry.dueAt <= now; entry = this.#leased.earliest) {
      this.#endPoll(entry, now);
      if (this.#toDelete.has(entry)) this.#deleteEntry(entry);
      else this.#enqueue(entry, now);
    }
  }

  #createEntry(item: Paced): Entry {
    const entry = new Entry(item);
    this.#entries.set(item.submissionId, entry);
    this.#probeCandidates.add(entry);
    return entry;
  }

  #send(entry: Entry, now: number): void {
    entry.dueAt = now + this.#settings.leaseMs;
    this.#leased.add(entry);
    this.#budget.send();
    if (this.#breaker.isOpen) this.#breaker.probing(now);
  }

  /** Out of whichever queue it is in; its request, if there is one, is over. */
  #endPoll(entry: Entry, now: number): void {
    if (this.#leased.has(entry)) {
      this.#leased.remove(entry);
      this.#budget.complete(now);
    } else {
      this.#dequeue(entry);
    }
  }

  #enqueue(entry: Entry, dueAt: number): void {
    entry.dueAt = dueAt;
    this.#waiting.add(entry);
  }

  #deleteEntry(entry: Entry): void {
    this.#entries.delete(entry.submissionId);
    this.#probeCandidates.remove(entry);
    this.#toDelete.delete(entry);
    this.#unregistered.delete(entry);
  }
}
