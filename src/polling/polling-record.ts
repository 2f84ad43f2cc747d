import type { PollingStores } from './polling-stores.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * How far ahead the ledger records that the process is polling, so that it is written once a minute
 * instead of once per poll.
 */
const AHEAD_MS = 60_000;

type PollingRecordDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: PollingStores;
};

/**
 * The record in the ledger of until when this process may be polling an upstream, so that the next
 * process knows which part of the request budget may already be spent. It is written ahead, with
 * the scheduler's snapshot.
 */
export class PollingRecord {
  readonly #deps: PollingRecordDeps;
  #until = Number.NEGATIVE_INFINITY;

  constructor(deps: PollingRecordDeps) {
    this.#deps = deps;
  }

  covers(now: number): boolean {
    return now < this.#until;
  }

  /** Throws what the ledger throws. */
  extend(now: number): void {
    this.#write(now + AHEAD_MS);
    this.#until = now + AHEAD_MS;
  }

  /** Records that the process sends no more polls. Throws what the ledger throws. */
  end(now: number): void {
    this.#write(now);
  }

  #write(until: number): void {
    const { ledger, upstream, scheduler } = this.#deps;
    ledger.upstreams.setPolling(upstream, until, scheduler.snapshot());
  }
}
