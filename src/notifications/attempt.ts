import { LedgerError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import { DamagedRowError } from '../lib/json.ts';
import {
  type Channel,
  failed,
  jittered,
  type Outgoing,
  type SendResult,
} from './channels/channel.ts';
import { type DeliveryResult, type DueDelivery, parseDestination } from './delivery.ts';
import { toEventJson } from './event-body.ts';

/** Upper bound for a channel that does not enforce its own, shorter timeouts. */
const SEND_LIMIT_MS = 150_000;

export type SentPart = { deliveries: readonly DueDelivery[]; result: SendResult };

/** `at`: when the attempt started. Does not send damaged events. Ends soon after `stop` aborts. */
export async function send(
  channel: Channel,
  deliveries: readonly DueDelivery[],
  deps: {
    clock: Clock;
    stop: AbortSignal;
    onFailed: (error: unknown) => void;
  },
): Promise<{ sent: SentPart[]; at: number; durationMs: number }> {
  const { clock, stop, onFailed } = deps;
  const limit = new AbortController();
  const aborted = Promise.withResolvers<void>();
  const abort = () => {
    limit.abort();
    aborted.resolve();
  };
  // AbortSignal.any would keep its listeners until `stop` is collected, which lives as long as the
  // process.
  stop.addEventListener('abort', abort);
  if (stop.aborted) abort();
  let cancelLimit: (() => void) | undefined;
  try {
    const at = clock.now();
    const startedAt = clock.elapsed();
    if (stop.aborted) return { sent: [], at, durationMs: 0 };
    cancelLimit = clock.after(SEND_LIMIT_MS, abort);
    const { readable, message, sent } = serialize(deliveries, onFailed);
    if (message.length > 0) {
      const result = await Promise.race([
        channel.send(message, limit.signal),
        // For a channel that ignores the signal.
        aborted.promise.then(() => failed('the attempt timed out')),
      ]).catch((error): SendResult => {
        onFailed(error);
        return undeliverable(NOT_SERIALIZED);
      });
      sent.push({ deliveries: readable, result });
    }
    return { sent, at, durationMs: Math.floor(clock.elapsed() - startedAt) };
  } finally {
    cancelLimit?.();
    stop.removeEventListener('abort', abort);
  }
}

const NOT_SERIALIZED =
  'this channel cannot serialize the event; the dawatch log contains the error';

/** Returns the message of the readable events, and the results of the damaged ones (`sent`). */
function serialize(deliveries: readonly DueDelivery[], onFailed: (error: unknown) => void) {
  const readable: DueDelivery[] = [];
  const message: Outgoing[] = [];
  const sent: SentPart[] = [];
  for (const delivery of deliveries) {
    const { event, callbackUrl } = delivery;
    try {
      if ('damage' in event) throw event.damage;
      message.push({ event, json: toEventJson(event), callbackUrl });
      readable.push(delivery);
    } catch (error) {
      const isDamage = error instanceof DamagedRowError;
      // Not thrown: its destination would send nothing until a restart.
      if (!isDamage) onFailed(error);
      const reason = isDamage ? error.message : NOT_SERIALIZED;
      sent.push({ deliveries: [delivery], result: undeliverable(reason) });
    }
  }
  return { readable, message, sent };
}

function undeliverable(error: string): SendResult {
  return { ...failed(error), undeliverable: true };
}

/** Fields in the singular describe the first delivery of the message. */
export type AttemptReport = ReturnType<typeof resultsOf>['report'];

/** `random` in [0, 1) jitters the retry. */
export function resultsOf(attempt: {
  destination: string;
  channel: Channel;
  deliveries: readonly DueDelivery[];
  result: SendResult;
  at: number;
  durationMs: number;
  now: number;
  random: number;
}) {
  const { destination, channel, deliveries, result, at, durationMs, now, random } = attempt;
  const error = result.kind === 'failed' ? result.error : (result.warning ?? null);
  const { httpStatus, response } = result;
  const { kind } = parseDestination(destination);
  const results = deliveries.map(({ id, attempts, callbackUrl }): DeliveryResult => {
    const delayMs = channel.retryDelayMs(attempts + 1);
    // All share one random value, so that deliveries sent as one message are retried as one.
    const retryAt = delayMs === null ? null : now + jittered(delayMs, random);
    return {
      deliveryId: id,
      destination,
      attempts,
      address: { webhook: channel.address, callback: callbackUrl, channel: null }[kind],
      attempt: { at, durationMs, httpStatus, error, response },
      next: nextOf(result, { retryAt, now }),
    };
  });
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
      attempt: first.attempts + 1,
      durationMs,
      result,
      next: firstResult.next,
    },
  };
}

/** Returns the next state of a delivery. `retryAt`: null after the last attempt. */
function nextOf(
  result: SendResult,
  { retryAt, now }: { retryAt: number | null; now: number },
): DeliveryResult['next'] {
  if (result.kind === 'delivered') return { kind: 'delivered' };
  if (result.undeliverable) return { kind: 'dead', reason: 'undeliverable' };
  if (result.gone) return { kind: 'gone' };
  if (retryAt === null) return { kind: 'dead', reason: 'attempts_used_up' };
  const retryAfterMs = result.slowDown?.retryAfterMs ?? 0;
  return { kind: 'retry', at: Math.max(retryAt, now + retryAfterMs) };
}

const RETRY_MS = 1_000;
/** Results within this time share one commit (rows `webhooks`, `webhook-latency`). */
const GATHER_MS = 10;
/** With this many uncommitted results nothing more is sent: the disk may be full. */
const MAX_UNCOMMITTED = 1_000;

export type AttemptResults = { results: DeliveryResult[]; report: AttemptReport };

type ResultWriterDeps = {
  commit: (results: readonly DeliveryResult[]) => void;
  clock: Clock;
  onCommitted: (committed: readonly AttemptResults[]) => void;
  onFailed: (error: unknown) => void;
};

/** Commits results in batches, and retries every second until the ledger takes them. */
export class ResultWriter {
  readonly #deps: ResultWriterDeps;
  #uncommitted: AttemptResults[] = [];
  #isUnavailable = false;
  #cancelFlush: (() => void) | undefined;

  constructor(deps: ResultWriterDeps) {
    this.#deps = deps;
  }

  /** The ledger cannot take results now: what is sent would be sent again after a crash. */
  get isBlocked(): boolean {
    return this.#isUnavailable || this.#uncommitted.length >= MAX_UNCOMMITTED;
  }

  add(result: AttemptResults): void {
    this.#uncommitted.push(result);
    this.#flushAfter(GATHER_MS);
  }

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

  #commit(batch: AttemptResults[]): AttemptResults[] {
    if (batch.length === 0) return [];
    const { commit, onFailed } = this.#deps;
    try {
      commit(batch.flatMap((one) => one.results));
      return batch;
    } catch (error) {
      const isUnavailable = error instanceof LedgerError;
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
