import { z } from 'zod';
import { hostUrl } from '../../operations/config/section-values.ts';
import type { Message, Severity } from '../message.ts';
import { type Channel, type ChannelType, type ChatOptions, createChatChannel } from './channel.ts';

/** ntfy turns a longer message into an attachment. */
const MAX_MESSAGE_BYTES = 4_096;

const STYLES: Record<Severity, { priority: number; tags: string[] }> = {
  good: { priority: 3, tags: ['white_check_mark'] },
  info: { priority: 3, tags: ['information_source'] },
  warning: { priority: 4, tags: ['warning'] },
  critical: { priority: 5, tags: ['rotating_light'] },
};

type NtfyOptions = ChatOptions & { topic: string; token?: string | undefined };

/** `url`: the server. A topic without access control is a password. */
export function createNtfyChannel({ topic, token, ...options }: NtfyOptions): Channel {
  return createChatChannel({
    ...options,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    secrets: token === undefined ? [topic] : [topic, token],
    toBody: ({ title, severity, body, link }: Message) => ({
      topic,
      title,
      message: withinBytes(body, MAX_MESSAGE_BYTES),
      ...STYLES[severity],
      ...(link !== null && { click: link }),
    }),
  });
}

function withinBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  const end = '…';
  const start = bytes.subarray(0, maxBytes - Buffer.byteLength(end));
  // `stream` omits a truncated last character.
  return `${new TextDecoder().decode(start, { stream: true })}${end}`;
}

const settings = z.strictObject({
  type: z.literal('ntfy'),
  topic: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be a topic of at most 64 letters, digits, - and _')
    .describe('Topic; who knows it can read it, unless the server restricts it'),
  token: z
    .string()
    .regex(/^[\w-]+$/, 'must be an access token, such as tk_…')
    .optional()
    .describe('Access token, for a topic that requires one'),
  url: hostUrl('http', 'https').default('https://ntfy.sh').describe('Address of the server'),
});

export const ntfy: ChannelType<z.output<typeof settings>> = {
  type: 'ntfy',
  settings,
  address: ({ url }) => url,
  create: (options, deps) => createNtfyChannel({ ...options, ...deps }),
};
