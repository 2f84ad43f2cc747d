import type { Observation } from '../domain/classify.ts';
import { type BreakerState, healthOf, isSeen } from '../domain/upstream-health.ts';
import { Backlog, type Rating } from './backlog.ts';
import { Breaker, type BreakerSettings } from './circuit-breaker.ts';
import { DueQueue } from './due-queue.ts';
import { Entry, type Paced, type Watched } from './entry.ts';
import { Pause } from './pause.ts';
import { NEVER, type PacingDescription, type PacingPolicy, type PolicyFactory, type PolicyReason } from './policy.ts';
import { ProbeCandidates } from './probe-candidates.ts';
import { Budget, type BudgetSettings } from './request-budget.ts';

export type PacerSettings = {
  budget: BudgetSettings;
  breaker: BreakerSettings;
  /** A batch without an answer for so long is lost, and its submissions are asked about again. */
  leaseMs: number;
  /** A finalized submission that stays watched is asked about again after this. */
  recheckMs: number;
};

/** What is asked about next, and when; `at` null: once an answer has come. `heldBy`: why not when it is due. */
export type NextQuestion = {
  submissionId: string;
  at: number | null;
  reason: PolicyReason | 'recheck' | 'probe';
  heldBy: 'pause' | 'budget' | null;
};

/** How an upstream is asked now. */
export type Outlook = {
  description: PacingDescription;
  budget: BudgetSettings & { used: number };
  next: NextQuestion | null;
};

/**
 * The brain of one upstream: which submissions to ask about next, and how many at all. It owns the request budget and the
 * breaker, so both hold however many hands do the asking. Pure: no I/O, no clock of its own, nothing kept outside memory.
 */
export class Pacer {
  readonly #settings: PacerSettings;
  readonly #policy: PacingPolicy;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new DueQueue<Entry>();
  /** Those that were due when `next` was called last, and are not in flight yet. */
  readonly #backlog = new Backlog((entry, now) => this.#rate(entry, now));
  readonly #leased = new DueQueue<Entry>();
  readonly #witnesses = new ProbeCandidates();
  readonly #budget: Budget;
  readonly #pause = new Pause();
  readonly #breaker: Breaker;
  /** In flight, and forgotten with their answers, because they were removed or are asked about only this once. */
  readonly #passing = new Set<Entry>();
  /** The policy decides about all but these: they are passing, or finalized and waiting for their recheck. */
  readonly #dismissed = new Set<Entry>();

  constructor(deps: { settings: PacerSettings; policy: PolicyFactory; random: () => number }) {
    this.#settings = deps.settings;
    this.#policy = deps.policy({ move: (item, dueAt) => this.#move(item as Entry, dueAt), random: deps.random });
    this.#budget = new Budget(deps.settings.budget);
    this.#breaker = new Breaker(deps.settings.breaker, deps.random);
  }

  get size(): number {
    return this.#entries.size - this.#passing.size;
  }

  get inFlight(): number {
    return this.#leased.size;
  }

  /** After this an answer counts as lost. */
  get leaseMs(): number {
    return this.#settings.leaseMs;
  }

  /** What the policy has learned, as the ledger keeps it. */
  learned(): string | null {
    return this.#policy.learned();
  }

  /** Goes on with what a process before this one learned; before anything is added. */
  recall(learned: string): void {
    this.#policy.recall(learned);
  }

  outlook(now: number): Outlook {
    const used = this.#budget.used(now);
    return {
      description: this.#policy.describe(now),
      budget: { ...this.#settings.budget, used },
      next: this.#nextQuestion(now),
    };
  }

  /** When the newest question was sent that found it open; -Infinity: none did. Forgotten once it is no longer watched. */
  openAt(submissionId: string): number {
    return this.#entries.get(submissionId)?.openAt ?? NEVER;
  }

  get breaker(): Pick<Breaker, 'state' | 'isOpen' | 'openedAt' | 'probeAt'> {
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
    return entry !== undefined && this.#dismissed.has(entry) && !this.#passing.has(entry);
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
    if (known) this.#keep(known, now);
    else this.#enrol(this.#enter(item), null, now);
  }

  /** Goes on with a submission where a process before this one stopped. */
  resume(item: Watched, now: number): void {
    const known = this.#entries.get(item.submissionId);
    if (known) {
      this.#keep(known, now);
      return;
    }
    // A clock that was ahead left times that are still to come.
    const polledAt = item.polledAt === null ? null : Math.min(item.polledAt, now);
    const entry = this.#enter({ ...item, trackedAt: Math.min(item.trackedAt, now) });
    if (item.finalizedAt === null) {
      this.#enrol(entry, polledAt, now);
    } else {
      this.#dismissed.add(entry);
      this.#wait(entry, this.#recheckAt(item.finalizedAt, polledAt ?? now));
    }
  }

  /** Asks no more about it. One in flight keeps its place in the concurrency until its answer comes. */
  remove(submissionId: string, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#dismiss(entry, now);
    if (this.#leased.has(entry)) {
      this.#passing.add(entry);
    } else {
      this.#unqueue(entry);
      this.#forget(entry);
    }
  }

  /**
   * A question out of turn, about any submission. `sent`: it has its place in the budget, ask now. `under_way`: it is in
   * flight already. `wait`: there is no place now; see `askAt`.
   */
  ask(submissionId: string, now: number): 'sent' | 'under_way' | 'wait' {
    this.#reclaimLost(now);
    const known = this.#entries.get(submissionId);
    if (known && this.#leased.has(known)) return 'under_way';
    if (this.#allowance(now) === 0) return 'wait';
    const entry = known ?? this.#enter({ submissionId, trackedAt: now, seen: false });
    if (known) {
      this.#unqueue(known);
    } else {
      this.#passing.add(entry);
      this.#dismissed.add(entry);
    }
    this.#send(entry, now);
    return 'sent';
  }

  /** The earliest moment at which there can be a place for a question out of turn; Infinity if that takes an answer. */
  askAt(): number {
    const probeAt = this.#breaker.isOpen ? this.#breaker.probeAt : Number.NEGATIVE_INFINITY;
    return Math.max(this.#pause.until, probeAt, this.#budget.availableAt());
  }

  /**
   * The ids to poll now, `most` at most; if more are due than the budget has room for, those with the highest gain. They
   * take places in the budget and are in flight until observed, or lost after the lease.
   */
  next(now: number, most = Number.POSITIVE_INFINITY): string[] {
    this.#reclaimLost(now);
    const batch: string[] = [];
    while (batch.length < most) {
      const room = this.#allowance(now);
      const entry = room === 0 ? undefined : this.#breaker.isOpen ? this.#probe() : this.#nextDue(room, now);
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
    const changed = this.#breaker.observe(healthOf(observation, { seenBefore, seenAny: this.#witnesses.areAny }), now);
    if (!entry) return changed;
    this.#land(entry, now);
    const recheckAt = now + this.#settings.recheckMs;
    const dueAt = this.#dismissed.has(entry) ? recheckAt : this.#policy.learn(entry, observation, now);
    if (observation.kind === 'finalized' || !watched) this.#dismiss(entry, now);
    if (!watched || this.#passing.has(entry)) {
      this.#forget(entry);
      return changed;
    }
    if (isSeen(observation)) this.#witnesses.show(entry);
    this.#wait(entry, observation.kind === 'finalized' ? recheckAt : dueAt);
    return changed;
  }

  /** Asks about a submission again at `dueAt`, because its answer could not be kept. */
  retry(submissionId: string, dueAt: number, now: number): void {
    const entry = this.#entries.get(submissionId);
    if (!entry) return;
    this.#land(entry, now);
    if (this.#passing.has(entry)) this.#forget(entry);
    else this.#wait(entry, dueAt);
  }

  /** Its answer may be on the way to somebody else: from then on it waits like the others. */
  #keep(known: Entry, now: number): void {
    if (!this.#passing.delete(known)) return;
    this.#dismissed.delete(known);
    this.#policy.enrol(known, { polledAt: null }, now);
  }

  #enrol(entry: Entry, polledAt: number | null, now: number): void {
    this.#wait(entry, this.#policy.enrol(entry, { polledAt }, now));
  }

  #dismiss(entry: Entry, now: number): void {
    if (this.#dismissed.has(entry)) return;
    this.#policy.leave(entry, now);
    this.#dismissed.add(entry);
  }

  /** What is in flight comes back by itself. */
  #move(entry: Entry, dueAt: number): void {
    if (this.#leased.has(entry)) return;
    this.#unqueue(entry);
    this.#wait(entry, dueAt);
  }

  #recheckAt(finalizedAt: number, now: number): number {
    return now + Math.min(this.#settings.recheckMs, Math.max(0, finalizedAt + this.#settings.recheckMs - now));
  }

  #allowance(now: number): number {
    if (now < this.#pause.until) return 0;
    if (!this.#breaker.isOpen) return this.#budget.available(now);
    return now < this.#breaker.probeAt ? 0 : Math.min(1, this.#budget.available(now));
  }

  /**
   * Due or not: an outage must not last longer than it does. One that the upstream has shown lately tells more than one
   * that may be odd itself.
   */
  #probe(): Entry | undefined {
    return this.#witnesses.free(this.#leased) ?? this.#earliest();
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
      const at = this.#dismissed.has(entry) ? now : this.#policy.confirm(entry, now);
      if (at <= now + 1) return entry;
      this.#unqueue(entry);
      this.#wait(entry, at);
    }
  }

  #rate(entry: Entry, now: number): Rating {
    if (this.#dismissed.has(entry)) return { gain: 0, isOverdue: true };
    return { gain: this.#policy.gain(entry, now), isOverdue: this.#policy.why(entry, now) === 'net' };
  }

  #earliest(): Entry | undefined {
    return this.#backlog.longestDue ?? this.#waiting.earliest;
  }

  #unqueue(entry: Entry): void {
    if (!this.#backlog.remove(entry)) this.#waiting.remove(entry);
  }

  #nextQuestion(now: number): NextQuestion | null {
    const isOut = this.#breaker.isOpen;
    const entry = isOut ? this.#probe() : (this.#backlog.best(now) ?? this.#waiting.earliest);
    if (!entry) return null;
    const dueAt = Math.max(now, isOut ? this.#breaker.probeAt : entry.dueAt);
    const placeAt = this.#budget.availableAt();
    const at = Math.max(dueAt, this.#pause.until, placeAt);
    const own = this.#dismissed.has(entry) ? 'recheck' : this.#policy.why(entry, now);
    return {
      submissionId: entry.submissionId,
      at: at === Number.POSITIVE_INFINITY ? null : at,
      reason: isOut ? 'probe' : own,
      heldBy: at === dueAt ? null : at === placeAt ? 'budget' : 'pause',
    };
  }

  /** A lost one has no place before the others: it is due now, like they are. */
  #reclaimLost(now: number): void {
    for (let entry = this.#leased.earliest; entry && entry.dueAt <= now; entry = this.#leased.earliest) {
      this.#land(entry, now);
      if (this.#passing.has(entry)) this.#forget(entry);
      else this.#wait(entry, now);
    }
  }

  #enter(item: Paced): Entry {
    const entry = new Entry(item);
    this.#entries.set(item.submissionId, entry);
    this.#witnesses.enter(entry);
    return entry;
  }

  #send(entry: Entry, now: number): void {
    entry.dueAt = now + this.#settings.leaseMs;
    this.#leased.add(entry);
    this.#budget.send();
    if (this.#breaker.isOpen) this.#breaker.probing(now);
  }

  /** Out of whichever queue it is in; its request, if there is one, is over. */
  #land(entry: Entry, now: number): void {
    if (this.#leased.has(entry)) {
      this.#leased.remove(entry);
      this.#budget.complete(now);
    } else {
      this.#unqueue(entry);
    }
  }

  #wait(entry: Entry, dueAt: number): void {
    entry.dueAt = dueAt;
    this.#waiting.add(entry);
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.submissionId);
    this.#witnesses.leave(entry);
    this.#passing.delete(entry);
    this.#dismissed.delete(entry);
  }
}
