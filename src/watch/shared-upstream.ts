import type { Clock } from '../domain/clock.ts';
import type { BreakerState } from '../domain/upstream-health.ts';
import type { Scheduler } from '../pacing/scheduler.ts';
import { type UpstreamLimitSettings, UpstreamLimits } from '../pacing/upstream-limits.ts';

/** A poll loop, as a member of its upstream. */
export type UpstreamMember = {
  /** Its share of an exhausted request budget is this number divided by the sum of the numbers of all waiting members. */
  readonly weight: () => number;
  /** Whether the loop has polls to send and may send them now. */
  isReady(): boolean;
  /** Returns at most `most` submissions to poll now. The budget is charged for them, and for granted reservations. */
  take(now: number, most: number): string[];
  send(submissionIds: string[]): void;
  /** The earliest time of its next poll; Infinity: the loop waits for a result or a change. */
  wakeAt(): number;
  /** Called after another member has changed the pause or the circuit breaker. `state` null: only the pause. */
  upstreamChanged(state: BreakerState | null): void;
  readonly scheduler: Pick<Scheduler, 'snapshot'>;
};

/**
 * One upstream with the poll loops that share its limits. Each ledger has one loop; without tenants there is one ledger.
 *
 * An exhausted budget is divided by start-time fair queueing: each request increases the position of its loop by one divided by its
 * weight, and the loop with the lowest position sends next. A loop that had nothing to send rejoins at the position of the newest
 * request: it neither waits for the backlog of the others nor accumulates its unused share, which the others use.
 */
export class SharedUpstream {
  readonly limits: UpstreamLimits;
  readonly #clock: Clock;
  /** The position of each member, in requests. */
  readonly #members = new Map<UpstreamMember, number>();
  /** The position of the newest request. */
  #position = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: { settings: UpstreamLimitSettings; clock: Clock; random: () => number }) {
    this.limits = new UpstreamLimits(deps.settings, deps.random);
    this.#clock = deps.clock;
  }

  /** Returns what a member has learned about the upstream; null: nothing. */
  get learned(): string | null {
    for (const { scheduler } of this.#members.keys()) {
      const snapshot = scheduler.snapshot();
      if (snapshot !== null) return snapshot;
    }
    return null;
  }

  get hasMembers(): boolean {
    return this.#members.size > 0;
  }

  join(member: UpstreamMember): void {
    this.#members.set(member, this.#position);
  }

  leave(member: UpstreamMember): void {
    this.#members.delete(member);
    this.wake();
  }

  /** Sends the polls that are due, and sets the timer for the next ones. Called whenever something has changed. */
  wake(): void {
    this.#send();
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    let wakeAt = Number.POSITIVE_INFINITY;
    for (const member of this.#members.keys()) wakeAt = Math.min(wakeAt, member.wakeAt());
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#clock.after(Math.max(1, wakeAt - this.#clock.now()), () => this.wake());
  }

  /** Notifies all other members of a change of the pause or, unless `state` is null, of the circuit breaker. */
  changed(by: UpstreamMember, state: BreakerState | null): void {
    for (const member of this.#members.keys()) if (member !== by) member.upstreamChanged(state);
  }

  #send(): void {
    const ready = [...this.#members.keys()].filter((member) => member.isReady());
    const now = this.#clock.now();
    const [only] = ready;
    if (ready.length > 1) this.#sendInTurn(new Set(ready), now);
    else if (only) send(only, this.#take(only, now, Number.POSITIVE_INFINITY).submissionIds);
  }

  #sendInTurn(waiting: Set<UpstreamMember>, now: number): void {
    const batches = new Map<UpstreamMember, string[]>();
    // Members take their turns even if no request is available: that ends their polls whose lease has expired.
    for (let next = this.#next(waiting); next; next = this.#next(waiting)) {
      const { submissionIds, requests } = this.#take(next, now, 1);
      if (requests <= 0) waiting.delete(next);
      const batch = batches.get(next);
      if (batch) batch.push(...submissionIds);
      else batches.set(next, submissionIds);
    }
    for (const [member, submissionIds] of batches) send(member, submissionIds);
  }

  #next(waiting: ReadonlySet<UpstreamMember>): UpstreamMember | undefined {
    let next: UpstreamMember | undefined;
    for (const member of waiting) if (!next || this.#positionOf(member) < this.#positionOf(next)) next = member;
    return next;
  }

  #positionOf(member: UpstreamMember): number {
    return Math.max(this.#position, this.#members.get(member) ?? 0);
  }

  #take(member: UpstreamMember, now: number, most: number) {
    const { budget } = this.limits;
    const usedBefore = budget.used(now);
    const submissionIds = member.take(now, most);
    const requests = budget.used(now) - usedBefore;
    if (requests > 0) {
      const from = this.#positionOf(member);
      this.#position = from + (requests - 1) / member.weight();
      this.#members.set(member, from + requests / member.weight());
    }
    return { submissionIds, requests };
  }
}

function send(member: UpstreamMember, submissionIds: string[]): void {
  if (submissionIds.length > 0) member.send(submissionIds);
}
