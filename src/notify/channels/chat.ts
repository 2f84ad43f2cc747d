import { retryDelayMs } from '../dispatch/retry-schedule.ts';
import { type Message, toMessage } from '../messages/message.ts';
import { type HttpPost, toSendResult } from '../transport/http-post.ts';
import type { Channel, SendResult } from './channel.ts';

/** What every service that takes messages by POST needs. */
export type ChatOptions = {
  /** It holds a secret. */
  url: string;
  /** Shared by all channels, and closed by who made it. */
  post: HttpPost['post'];
};

type ChatService = ChatOptions & {
  toBody: (message: Message) => unknown;
  /** Where a service says more than its HTTP status does. */
  read?: (result: SendResult) => SendResult;
};

/** So many events make one message. */
export const CHAT_BATCH = 100;

export function createChatChannel({ url, post, toBody, read = (result) => result }: ChatService): Channel {
  return {
    maxBatch: CHAT_BATCH,
    retryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('there is nothing to send');
      const body = JSON.stringify(toBody(toMessage([first, ...others])));
      return read(toSendResult(await post({ url, body, headers: { accept: 'application/json' }, signal })));
    },
    async close() {},
  };
}

export function failed(error: string, slowDown?: { retryAfterMs: number | null }): SendResult {
  return { kind: 'failed', httpStatus: null, error, response: null, ...(slowDown && { slowDown }) };
}
