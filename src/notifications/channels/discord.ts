import { z } from 'zod';
import { httpUrl } from '../../operations/config/section-values.ts';
import { escapeWith, type Message, type Severity, truncate } from '../message.ts';
import { type Channel, type ChannelType, type ChatOptions, createChatChannel } from './channel.ts';

const MAX_TITLE_CHARS = 256;
const MAX_FIELDS = 25;
const MAX_VALUE_CHARS = 1_024;
const MAX_EMBED_CHARS = 6_000;

/** Values up to this length are shown next to each other. */
const INLINE_CHARS = 32;
/** Discord requires a field name; this one is invisible. */
const NO_NAME = '\u200b';
const COLOURS: Record<Severity, number> = {
  good: 0x2e9d5b,
  info: 0x3b82c4,
  warning: 0xe0a100,
  critical: 0xd0342c,
};

export function createDiscordChannel({ url, ...options }: ChatOptions): Channel {
  return createChatChannel({ ...options, url: confirmed(url), toBody: toDiscordBody });
}

/** Adds `wait`: without it Discord responds before it has validated the message. */
function confirmed(url: string): string {
  const target = URL.parse(url);
  target?.searchParams.set('wait', 'true');
  return target?.href ?? url;
}

const escaped = (char: string) => (/[!-/:-@[-`{-~]/.test(char) ? `\\${char}` : char);
/** In a code span only a backtick has to be escaped. */
const inCode = escapeWith({ '`': "'" });

function toDiscordBody({ title, severity, lines, link }: Message): unknown {
  const heading = truncate(title, MAX_TITLE_CHARS, escaped);
  let available = MAX_EMBED_CHARS - heading.length;
  const fields: { name: string; value: string; inline: boolean }[] = [];
  for (const { label, value } of lines.slice(0, MAX_FIELDS)) {
    const name = label ?? NO_NAME;
    const code = `\`${truncate(value, MAX_VALUE_CHARS - 2, inCode)}\``;
    available -= name.length + code.length;
    if (available < 0) break;
    fields.push({ name, value: code, inline: label !== null && value.length <= INLINE_CHARS });
  }
  const embed = {
    title: heading,
    color: COLOURS[severity],
    fields,
    ...(link !== null && { url: link }),
  };
  return { embeds: [embed], allowed_mentions: { parse: [] } };
}

const settings = z.strictObject({
  type: z.literal('discord'),
  url: httpUrl.describe('Webhook address'),
});

export const discord: ChannelType<z.output<typeof settings>> = {
  type: 'discord',
  settings,
  address: ({ url }) => url,
  create: ({ url }, deps) => createDiscordChannel({ url, ...deps }),
};
