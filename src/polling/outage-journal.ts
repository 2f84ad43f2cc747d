import { MAX_RETRY_AFTER_MS } from '../lib/retry-after.ts';
import { UpstreamEventType } from '../submissions/event-types.ts';
import type { PauseRecord, UpstreamChange, UpstreamRecord } from '../submissions/upstream.ts';
import { BreakerState } from '../submissions/upstream.ts';
import type { WatcherListener } from './listeners.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * The total time in which an upstream could not be polled: outages (the circuit breaker was open),
 * pauses (the upstream sent Retry-After), and steps of the clock (the machine slept). Every time
 * limit moves by this total. Overlapping outages and pauses count once: the start of an outage ends
 * the pause, whose rest counts again after the outage.
 */
export class OutageClock {
  #pastMs = 0;
  #outSince: number | null = null;
  #pause: { since: number; until: number } | null = null;

  /**
   * Continues from the record of an earlier process. A time in the future was written by a clock
   * that was ahead.
   */
  restore(record: PauseRecord & { outSince: number | null }, now: number): void {
    const { outageMs, outSince, pausedSince, pausedUntil } = record;
    this.#pastMs = outageMs;
    this.#outSince = outSince === null ? null : Math.min(outSince, now);
    if (pausedSince !== null && pausedUntil !== null)
      this.#pause = { since: Math.min(pausedSince, now), until: pausedUntil };
  }

  totalMs(now: number): number {
    const outMs = this.#outSince === null ? 0 : Math.max(0, now - this.#outSince);
    return this.#pastMs + outMs + this.#pausedMs(now);
  }

  /** Has no effect during an outage. */
  outageBegins(at: number): void {
    if (this.#outSince !== null) return;
    this.#pastMs += this.#pausedMs(at);
    this.#pause = null;
    this.#outSince = at;
  }

  outageEnds(at: number): void {
    if (this.#outSince === null) return;
    this.#pastMs += Math.max(0, at - this.#outSince);
    this.#outSince = null;
  }

  /** Sets the end of the pause. Returns whether the pause changed. */
  pauses(until: number, now: number): boolean {
    if (this.#pause && this.#pause.until <= now) {
      this.#pastMs += this.#pausedMs(now);
      this.#pause = null;
    }
    if (this.#outSince !== null || until <= now || this.#pause?.until === until) return false;
    this.#pause = { since: this.#pause?.since ?? now, until };
    return true;
  }

  /** Adds a step of the clock: the machine slept, or its clock was set forward. */
  skips(from: number, to: number): void {
    if (this.#outSince !== null || (this.#pause && this.#pause.until >= to)) return;
    const pausedUntil = this.#pause?.until ?? from;
    this.#pastMs += this.#pausedMs(to) + to - Math.max(from, pausedUntil);
    this.#pause = null;
  }

  get outSince(): number | null {
    return this.#outSince;
  }

  get record(): PauseRecord {
    const { since = null, until = null } = this.#pause ?? {};
    return { outageMs: this.#pastMs, pausedSince: since, pausedUntil: until };
  }

  #pausedMs(now: number): number {
    return this.#pause ? Math.max(0, Math.min(now, this.#pause.until) - this.#pause.since) : 0;
  }
}

/**
 * A pause is written immediately if it ends at least this much later than the one in the ledger.
 */
const UNWRITTEN_PAUSE_MS = 10_000;

const EVENT_OF = {
  [BreakerState.closed]: UpstreamEventType.up,
  [BreakerState.down]: UpstreamEventType.down,
  [BreakerState.unauthorized]: UpstreamEventType.unauthorized,
} as const satisfies Record<BreakerState, UpstreamEventType>;

type OutageJournalDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: {
    recordUpstream(change: UpstreamChange): void;
    recordPause(upstream: string, pause: PauseRecord): void;
  };
  listener: Required<WatcherListener>;
};

/**
 * Keeps the outages and pauses of one upstream in the ledger, so that time limits exclude them
 * after a restart too. A change that the ledger rejects stays in the journal and is written by a
 * later `write`.
 */
export class OutageJournal {
  readonly #deps: OutageJournalDeps;
  readonly #clock = new OutageClock();
  /** Changes of the circuit breaker that are not in the ledger yet. */
  readonly #unwritten: UpstreamChange[] = [];
  #isPauseUnwritten = false;
  #isStepUnwritten = false;
  #writtenPauseUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: OutageJournalDeps) {
    this.#deps = deps;
  }

  /** Continues the outage and the pause that an earlier process recorded. */
  restore(record: UpstreamRecord, now: number): void {
    const { scheduler } = this.#deps;
    const { breaker } = scheduler.limits;
    this.#clock.restore(record, now);
    if (record.outSince !== null)
      breaker.restore(record.state, Math.min(record.outSince, now), now);
    // A process whose clock was ahead may have recorded a pause that ends too late.
    if (record.pausedUntil !== null)
      scheduler.limits.pause.restore(Math.min(record.pausedUntil, now + MAX_RETRY_AFTER_MS));
  }

  /** Total duration of all outages and pauses until `now`. Every time limit moves by it. */
  outageMs(now: number): number {
    return this.#clock.totalMs(now);
  }

  /** Adds a step of the clock, during which nothing was polled. */
  skip(skippedMs: number, now: number): void {
    this.#clock.skips(now - skippedMs, now);
    this.#isStepUnwritten = true;
  }

  /** Adds a change of the circuit breaker, to be written by `write`. */
  breakerChanged(state: BreakerState, now: number): void {
    const { scheduler, upstream } = this.#deps;
    if (state === BreakerState.closed) this.#clock.outageEnds(now);
    else this.#clock.outageBegins(scheduler.limits.breaker.openedAt);
    // Recording the outage clears the pause in the upstream's row.
    this.#writtenPauseUntil = Number.NEGATIVE_INFINITY;
    const record = { state, outSince: this.#clock.outSince, outageMs: this.#clock.record.outageMs };
    this.#unwritten.push({ upstream, at: now, event: EVENT_OF[state], record });
  }

  /**
   * Writes all changes of the circuit breaker, and a long pause. Short pauses, of which there can
   * be one per second, wait for `writePause`. Throws what the ledger throws.
   */
  write(now: number): void {
    const { scheduler, ledger, listener } = this.#deps;
    for (let change = this.#unwritten[0]; change; change = this.#unwritten[0]) {
      ledger.recordUpstream(change);
      this.#unwritten.shift();
      listener.upstream(change);
    }
    const pausedUntil = scheduler.limits.pause.until;
    if (this.#clock.pauses(pausedUntil, now)) this.#isPauseUnwritten = true;
    if (pausedUntil - Math.max(now, this.#writtenPauseUntil) >= UNWRITTEN_PAUSE_MS)
      this.writePause();
  }

  /** Writes a step of the clock that is not in the ledger. Throws what the ledger throws. */
  writeStep(now: number): void {
    if (!this.#isStepUnwritten) return;
    // A change of the breaker has its own time without responses, which would replace a newer one.
    this.write(now);
    this.writePause();
  }

  /**
   * Writes the pauses and steps that the ledger does not have yet. Throws what the ledger throws.
   */
  writePause(): void {
    if (!this.#isPauseUnwritten && !this.#isStepUnwritten) return;
    const { record } = this.#clock;
    this.#deps.ledger.recordPause(this.#deps.upstream, record);
    this.#isPauseUnwritten = false;
    this.#isStepUnwritten = false;
    this.#writtenPauseUntil = record.pausedUntil ?? Number.NEGATIVE_INFINITY;
  }
}
