import type { Clock } from '../lib/clock.ts';
import type { Span } from '../submissions/tracing.ts';
import { type Channel, failed, type SendResult } from './channels/channel.ts';
import type { DueDelivery } from './delivery.ts';
import { toEventJson } from './event-body.ts';

/** Upper bound for a channel that does not enforce its own, shorter timeouts. */
const SEND_LIMIT_MS = 150_000;

/** Begins the span of an attempt; undefined if no traced submission is concerned. Never throws. */
export type TraceDelivery = (
  destination: string,
  deliveries: readonly DueDelivery[],
) => Span | undefined;

/**
 * Resolves when all events that have been read are on the disk; undefined if they are. Rejects if
 * the disk failed.
 */
export type Durability = { whenDurable(): Promise<void> | undefined };

/** The result of those deliveries of an attempt that were sent as one message. */
export type SentPart = { deliveries: readonly DueDelivery[]; result: SendResult };

/**
 * Makes one attempt and returns its results, with the time at which it started (`at`). If the
 * channel cannot serialize the message, each event is sent on its own, so that one event does not
 * block the others. Ends soon after `stop` aborts. An event is sent only when it is on the disk.
 * Rejects if the disk failed.
 */
export async function send(
  channel: Channel,
  deliveries: readonly DueDelivery[],
  deps: {
    destination: string;
    store: Durability;
    clock: Clock;
    stop: AbortSignal;
    onFailed: (error: unknown) => void;
    /** Undefined: tracing is off. */
    trace?: TraceDelivery | undefined;
  },
): Promise<{ sent: SentPart[]; at: number }> {
  const { clock, stop, onFailed } = deps;
  const durable = deps.store.whenDurable();
  if (durable) await untilAborted(durable, stop);
  if (stop.aborted) return { sent: [], at: clock.now() };
  const at = clock.now();
  const span = deps.trace?.(deps.destination, deliveries);
  const limit = new AbortController();
  const abort = () => limit.abort();
  const cancelLimit = clock.after(SEND_LIMIT_MS, abort);
  // AbortSignal.any would keep its listeners until `stop` is collected, which lives as long as the
  // process.
  stop.addEventListener('abort', abort);
  if (stop.aborted) abort();
  const sendAll = async (all: readonly DueDelivery[]): Promise<SentPart[]> => {
    try {
      const batch = all.map(({ event, callbackUrl }) => ({
        event,
        json: toEventJson(event),
        callbackUrl,
        traceparent: span?.traceparent,
      }));
      const result = await Promise.race([
        channel.send(batch, limit.signal),
        resultOnAbort(limit.signal),
      ]);
      return [{ deliveries: all, result }];
    } catch (error) {
      onFailed(error);
      if (all.length === 1) return [{ deliveries: all, result: UNDELIVERABLE }];
      const sent: SentPart[] = [];
      for (const one of all) sent.push(...(await sendAll([one])));
      return sent;
    }
  };
  try {
    const sent = await sendAll(deliveries);
    span?.end(endOf(sent));
    return { sent, at };
  } finally {
    cancelLimit();
    stop.removeEventListener('abort', abort);
  }
}

function endOf(sent: readonly SentPart[]): Parameters<Span['end']>[0] {
  const failure = sent.map(({ result }) => result).find(({ kind }) => kind === 'failed');
  const httpStatus = (failure ?? sent[0]?.result)?.httpStatus ?? undefined;
  return {
    error: failure?.kind === 'failed' ? failure.error : undefined,
    attributes: { 'http.response.status_code': httpStatus },
  };
}

const UNDELIVERABLE: SendResult = {
  ...failed('this channel cannot serialize the event; the dawatch log contains the error'),
  undeliverable: true,
};

/** Resolves when the signal aborts, for a channel that ignores it. */
function resultOnAbort(signal: AbortSignal): Promise<SendResult> {
  const late = failed('the attempt timed out');
  return new Promise((resolve) =>
    signal.addEventListener('abort', () => resolve(late), { once: true }),
  );
}

/** Resolves with the promise, or when the signal aborts. */
async function untilAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const aborted = Promise.withResolvers<void>();
  const abort = () => aborted.resolve();
  signal.addEventListener('abort', abort);
  await Promise.race([promise, aborted.promise]).finally(() =>
    signal.removeEventListener('abort', abort),
  );
}

/**
 * Groups deliveries into messages: events of one type, at most `maxBatch` per message, in their
 * order.
 */
export function toMessages(due: readonly DueDelivery[], maxBatch: number): DueDelivery[][] {
  const open = new Map<string, DueDelivery[]>();
  const messages: DueDelivery[][] = [];
  for (const delivery of due) {
    let message = open.get(delivery.event.type);
    if (!message || message.length === maxBatch) {
      message = [];
      open.set(delivery.event.type, message);
      messages.push(message);
    }
    message.push(delivery);
  }
  return messages;
}
