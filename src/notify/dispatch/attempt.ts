import type { Clock } from '../../domain/clock.ts';
import type { DueDelivery } from '../../domain/notifications/delivery.ts';
import { toEventJson } from '../../domain/notifications/event-body.ts';
import type { ReportUnreadable } from '../../domain/stored.ts';
import type { Channel, SendResult } from '../channels/channel.ts';

/** Every channel has shorter limits of its own; this is for one that breaks its word. */
const SEND_LIMIT_MS = 150_000;

/** What came of some deliveries of an attempt. */
export type SentPart = { waiting: readonly DueDelivery[]; result: SendResult };

/**
 * One attempt; `at`: when it began. A message that the channel can not write is sent again event by event, so that one event
 * takes no other with it. Ends soon after `stop` aborts. Never rejects.
 */
export async function send(
  channel: Channel,
  waiting: readonly DueDelivery[],
  deps: { clock: Clock; stop: AbortSignal; onFailed: (error: unknown) => void; onUnreadable: ReportUnreadable },
): Promise<{ sent: SentPart[]; at: number }> {
  const { clock, stop, onFailed, onUnreadable } = deps;
  const at = clock.now();
  const limit = new AbortController();
  const end = () => limit.abort();
  const cancelLimit = clock.after(SEND_LIMIT_MS, end);
  // Not AbortSignal.any: what listens to such a signal is kept for as long as the longest-lived of its parts.
  stop.addEventListener('abort', end);
  if (stop.aborted) end();
  const sendAll = async (all: readonly DueDelivery[]): Promise<SentPart[]> => {
    try {
      const batch = all.map(({ event, callbackUrl }) => ({
        event,
        json: toEventJson(event, onUnreadable),
        callbackUrl,
      }));
      return [{ waiting: all, result: await Promise.race([channel.send(batch, limit.signal), endOf(limit.signal)]) }];
    } catch (error) {
      onFailed(error);
      if (all.length === 1) return [{ waiting: all, result: UNDELIVERABLE }];
      const sent: SentPart[] = [];
      for (const one of all) sent.push(...(await sendAll([one])));
      return sent;
    }
  };
  try {
    return { sent: await sendAll(waiting), at };
  } finally {
    cancelLimit();
    stop.removeEventListener('abort', end);
  }
}

const UNDELIVERABLE: SendResult = {
  kind: 'failed',
  httpStatus: null,
  error: 'the event can not be written as this channel needs it: the log of dawatch has the error',
  response: null,
  undeliverable: true,
};

/** What counts where a channel does not end when it is told to. */
function endOf(signal: AbortSignal): Promise<SendResult> {
  const result: SendResult = { kind: 'failed', httpStatus: null, error: 'it took too long', response: null };
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(result), { once: true }));
}

/** What is told as one message each: events of one type, not more at once than the channel takes. */
export function toMessages(due: readonly DueDelivery[], maxBatch: number): DueDelivery[][] {
  const open = new Map<string, DueDelivery[]>();
  const messages: DueDelivery[][] = [];
  for (const waiting of due) {
    let message = open.get(waiting.event.type);
    if (!message || message.length === maxBatch) {
      message = [];
      open.set(waiting.event.type, message);
      messages.push(message);
    }
    message.push(waiting);
  }
  return messages;
}
