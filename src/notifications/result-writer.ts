import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import { type Channel, jittered, type SendResult } from './channels/channel.ts';
import type { Deliveries } from './deliveries-store.ts';
import type { DamagedDelivery, DeliveryResult, DueDelivery } from './delivery.ts';
import type { DestinationQueue } from './destination-queue.ts';

/**
 * One committed attempt, for logs and metrics. The fields in the singular describe the first
 * delivery of the message.
 */
export type AttemptReport = ReturnType<typeof resultsOf>['report'];

/**
 * Returns the result of an attempt for each of its deliveries, and its report. `random` in [0, 1)
 * jitters the retry.
 */
export function resultsOf(attempt: {
  destination: string;
  channel: Pick<Channel, 'retryDelayMs'>;
  /** At least one. */
  deliveries: readonly (DueDelivery | DamagedDelivery)[];
  result: SendResult;
  /** When the attempt started and ended. */
  at: number;
  now: number;
  random: number;
}) {
  const { destination, channel, deliveries, result, at, now, random } = attempt;
  const durationMs = now - at;
  const error = result.kind === 'failed' ? result.error : null;
  const stored = {
    at,
    durationMs,
    httpStatus: result.httpStatus,
    error,
    response: result.response,
  };
  const results = deliveries.map(
    ({ id, attempts, revision }): DeliveryResult => ({
      deliveryId: id,
      destination,
      attempts,
      revision,
      attempt: stored,
      // All share one random value, so that deliveries sent as one message are retried as one.
      next: nextOf(result, { channel, attempts: attempts + 1, now, random }),
    }),
  );
  const [first, firstResult] = [deliveries[0], results[0]];
  if (!first || !firstResult) throw new Error('an attempt without deliveries');
  return {
    results,
    report: {
      destination,
      deliveryIds: deliveries.map(({ id }) => id),
      eventIds: deliveries.map(({ event }) => event.id),
      eventType: first.event.type,
      submissionId: 'submission' in first.event ? first.event.submission.submissionId : undefined,
      /** 1-based. */
      attempt: first.attempts + 1,
      durationMs,
      result,
      next: firstResult.next,
    },
  };
}

/** The next state of a delivery after `attempts` attempts. */
function nextOf(
  result: SendResult,
  context: {
    channel: Pick<Channel, 'retryDelayMs'>;
    attempts: number;
    now: number;
    random: number;
  },
): DeliveryResult['next'] {
  const { channel, attempts, now, random } = context;
  if (result.kind === 'delivered') return { kind: 'delivered' };
  if (result.undeliverable) return { kind: 'dead', reason: 'undeliverable' };
  if (result.gone) return { kind: 'gone' };
  const delayMs = channel.retryDelayMs(attempts);
  if (delayMs === null) return { kind: 'dead', reason: 'attempts_used_up' };
  const retryAfterMs = result.slowDown?.retryAfterMs ?? 0;
  return { kind: 'retry', at: now + Math.max(jittered(delayMs, random), retryAfterMs) };
}

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
    const { store, onFailed } = this.#deps;
    try {
      const results = batch.flatMap((one) => one.results);
      store.recordResults(results);
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
