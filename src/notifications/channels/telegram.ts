import { z } from 'zod';
import { retryAfterMs } from '../../lib/http-call.ts';
import { hostUrl } from '../../operations/config/section-values.ts';
import { type Message, truncate } from '../message.ts';
import {
  type Channel,
  type ChannelType,
  type ChatOptions,
  createChatChannel,
  failed,
  type SendResult,
} from './channel.ts';

const MAX_TEXT_CHARS = 4_096;

type TelegramOptions = ChatOptions & { token: string; chatId: number | string };

/** `url`: the server of the Bot API, to which the path with the token is appended. */
export function createTelegramChannel({
  url,
  token,
  chatId,
  ...options
}: TelegramOptions): Channel {
  return createChatChannel({
    ...options,
    url: `${url.replace(/\/$/, '')}/bot${token}/sendMessage`,
    secrets: [token],
    toBody: ({ text }: Message) => ({
      chat_id: chatId,
      // Clients detect mentions in plain text, too.
      text: truncate(text.replaceAll('@', '＠'), MAX_TEXT_CHARS),
      link_preview_options: { is_disabled: true },
    }),
    read: ofTelegram,
  });
}

/** The body says whether the message was sent, and what to change. */
function ofTelegram(result: SendResult): SendResult {
  const { httpStatus, response } = result;
  const text = response ?? '';
  if (result.kind === 'delivered' && /^\s*\{\s*"ok"\s*:\s*true\b/.test(text)) return result;
  const failure =
    result.kind === 'failed'
      ? result
      : { ...failed('the response does not confirm the message'), httpStatus, response };
  const retryAfter = /"retry_after":(\d+)/.exec(text)?.[1];
  const newChatId = /"migrate_to_chat_id":(-?\d+)/.exec(text)?.[1];
  return {
    ...failure,
    ...(retryAfter !== undefined && {
      slowDown: { retryAfterMs: retryAfterMs({ retryAfter, date: null }) },
    }),
    ...(newChatId !== undefined && {
      error: `the group has become a supergroup: set chat_id to ${newChatId}`,
    }),
  };
}

const CHAT_ID = 'must be the number of a chat, such as -1001234567890, or "@" and a public name';

const settings = z.strictObject({
  type: z.literal('telegram'),
  token: z
    .string()
    .regex(/^(?:\d+:)?[\w-]{30,}$/, 'must be the token of a bot, such as 123456:AAH…')
    .describe('Token of the bot'),
  chat_id: z
    .union([z.number(), z.string().regex(/^(?:-?\d+|@\w+)$/, CHAT_ID)], CHAT_ID)
    .describe('Chat: its number, or `"@name"` if it is public; the bot must be a member'),
  url: hostUrl('http', 'https')
    .default('https://api.telegram.org')
    .describe('Address of the Bot API'),
});

export const telegram: ChannelType<z.output<typeof settings>> = {
  type: 'telegram',
  settings,
  address: ({ url }) => url,
  receiver: ({ chat_id }) => `to ${chat_id}`,
  create: ({ chat_id, ...options }, deps) =>
    createTelegramChannel({ ...options, chatId: chat_id, ...deps }),
};
