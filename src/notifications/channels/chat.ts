import { type Message, toMessage } from '../message.ts';
import { type HttpPost, toSendResult } from '../transport/http-post.ts';
import { type Channel, failed, peopleRetryDelayMs, type SendResult } from './channel.ts';

export type ChatOptions = {
  /** Contains a secret. */
  url: string;
  /** Shared by all channels; closed by its creator. */
  post: HttpPost['post'];
  /** Returns the setting `server.public_url`, for links. Default: none. */
  publicUrl?: string | undefined;
};

type ChatService = ChatOptions & {
  toBody: (message: Message) => unknown;
  /** Refines the result where the response contains more than the HTTP status. */
  read?: (result: SendResult) => SendResult;
};

/** Maximum events per message. */
export const CHAT_BATCH = 100;

/** A channel that posts messages as JSON to a chat service. */
export function createChatChannel({
  url,
  post,
  publicUrl,
  toBody,
  read = (result) => result,
}: ChatService): Channel {
  return {
    address: url,
    maxBatch: CHAT_BATCH,
    retryDelayMs: peopleRetryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('the batch is empty');
      const body = JSON.stringify(toBody(toMessage([first, ...others], publicUrl)));
      return read(
        toSendResult(await post({ url, body, headers: { accept: 'application/json' }, signal })),
      );
    },
    async close() {},
  };
}
