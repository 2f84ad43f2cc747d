import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Deliveries } from './deliveries-store.ts';
import type { DeliveryResult } from './delivery.ts';
import type { DestinationQueue } from './destination-queue.ts';

import type { AttemptReport } from './result.ts';

const RETRY_MS = 1_000;
/**
 * Results that arrive within this time share one commit (rows `webhooks` and `webhook-latency` of
 * `npm run bench`).
 */
const GATHER_MS = 10;
/** With this many uncommitted results nothing more is sent: the disk may be full. */
const MAX_UNCOMMITTED = 1_000;

export type AttemptResult = {
  queue: DestinationQueue;
  results: DeliveryResult[];
  report: AttemptReport;
};

type ResultWriterDeps = {
  store: Pick<Deliveries, 'recordResults'>;
  clock: Clock;
  disableAfterMs: number;
  onCommitted: (committed: readonly AttemptResult[]) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Commits the results of attempts in batches, and retries every second until the ledger takes them.
 */
export class ResultWriter {
  readonly #deps: ResultWriterDeps;
  #uncommitted: AttemptResult[] = [];
  #isUnavailable = false;
  #cancelFlush: (() => void) | undefined;

  constructor(deps: ResultWriterDeps) {
    this.#deps = deps;
  }

  /** The ledger cannot take results now: what is sent would be sent again after a crash. */
  get isBlocked(): boolean {
    return this.#isUnavailable || this.#uncommitted.length >= MAX_UNCOMMITTED;
  }

  add(result: AttemptResult): void {
    this.#uncommitted.push(result);
    this.#flushAfter(GATHER_MS);
  }

  /** Makes a last attempt to commit. */
  close(): void {
    this.#cancelFlush?.();
    this.#flush();
    this.#cancelFlush?.();
  }

  #flushAfter(delayMs: number): void {
    this.#cancelFlush ??= this.#deps.clock.after(delayMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelFlush = undefined;
    this.#isUnavailable = false;
    this.#deps.onCommitted(this.#commit(this.#uncommitted.splice(0)));
  }

  /** Returns those that were committed; the others are retried. */
  #commit(batch: AttemptResult[]): AttemptResult[] {
    if (batch.length === 0) return [];
    const { store, disableAfterMs, onFailed } = this.#deps;
    try {
      const results = batch.flatMap((one) => one.results);
      store.recordResults(results, disableAfterMs);
      return batch;
    } catch (error) {
      const isUnavailable = error instanceof LedgerUnavailableError;
      // One by one, so that a result that cannot be stored does not block the others.
      if (!isUnavailable && batch.length > 1) return batch.flatMap((one) => this.#commit([one]));
      onFailed(error);
      this.#isUnavailable ||= isUnavailable;
      this.#uncommitted.push(...batch);
      this.#flushAfter(RETRY_MS);
      return [];
    }
  }
}
