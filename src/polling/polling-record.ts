import type { Clock } from '../lib/clock.ts';
import type { WatcherLedger } from '../submissions/ports.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * How far ahead the ledger records that the process is polling, so that it is written once a minute
 * instead of once per poll.
 */
export const AHEAD_MS = 60_000;

/**
 * Waiting for the disk longer than this does not count as upstream silence. A sync takes
 * milliseconds, and one is waited for each minute.
 */
const HANGING_MS = 10_000;

type PollingRecordDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: WatcherLedger;
  clock: Clock;
  /** Called when a record is on the disk. `hungSince`: since when it hung; null: it did not. */
  onDurable: (hungSince: number | null) => void;
};

/**
 * The record in the ledger of until when this process may be polling an upstream, so that the next
 * process knows which part of the request budget may already be spent. It is written ahead, with
 * the scheduler's snapshot, and polls wait until it is on the disk.
 */
export class PollingRecord {
  readonly #deps: PollingRecordDeps;
  #until = Number.NEGATIVE_INFINITY;
  #isWaitingForDisk = false;

  constructor(deps: PollingRecordDeps) {
    this.#deps = deps;
  }

  /**
   * Whether the newest record is not on the disk yet: after a power failure, the next process would
   * not know of the polls.
   */
  get isWaitingForDisk(): boolean {
    return this.#isWaitingForDisk;
  }

  covers(now: number): boolean {
    return now < this.#until;
  }

  /** Throws what the ledger throws. */
  extend(now: number): void {
    this.#write(now + AHEAD_MS);
    this.#until = now + AHEAD_MS;
    const durable = this.#deps.ledger.whenDurable();
    this.#isWaitingForDisk = durable !== undefined;
    const onDurable = () => {
      this.#isWaitingForDisk = false;
      const isHanging = this.#deps.clock.now() - now >= HANGING_MS;
      this.#deps.onDurable(isHanging ? now : null);
    };
    // After a failed sync the process ends.
    void durable?.then(onDurable, () => undefined);
  }

  /** Records that the process sends no more polls. Throws what the ledger throws. */
  end(now: number): void {
    this.#write(now);
  }

  #write(until: number): void {
    const { ledger, upstream, scheduler } = this.#deps;
    ledger.recordPolling(upstream, until, scheduler.snapshot());
  }
}
