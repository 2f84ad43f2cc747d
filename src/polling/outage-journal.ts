import { MAX_RETRY_AFTER_MS } from '../lib/retry-after.ts';
import { UpstreamEventType } from '../submissions/event-types.ts';
import type { WatcherLedger } from '../submissions/ports.ts';
import type { UpstreamChange, UpstreamRecord } from '../submissions/upstream.ts';
import { BreakerState } from '../submissions/upstream.ts';
import type { WatcherListener } from './listeners.ts';
import { OutageClock } from './outage-clock.ts';
import type { Scheduler } from './scheduler.ts';

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
  ledger: Pick<WatcherLedger, 'recordUpstream' | 'recordPause'>;
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
    this.#isPauseUnwritten = true;
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

  /** Writes the pauses that the ledger does not have yet. Throws what the ledger throws. */
  writePause(): void {
    if (!this.#isPauseUnwritten) return;
    const { record } = this.#clock;
    this.#deps.ledger.recordPause(this.#deps.upstream, record);
    this.#isPauseUnwritten = false;
    this.#writtenPauseUntil = record.pausedUntil ?? Number.NEGATIVE_INFINITY;
  }
}
