import { parseJson } from '../../domain/json.ts';
import type { Message, Severity } from '../messages/message.ts';
import { escapeWith, truncate } from '../messages/truncate.ts';
import type { Channel, SendResult } from './channel.ts';
import { type ChatOptions, createChatChannel } from './chat.ts';

/** Discord refuses a message that is over one of these. */
const MAX_TITLE_CHARS = 256;
const MAX_FIELDS = 25;
const MAX_VALUE_CHARS = 1_024;
const MAX_EMBED_CHARS = 6_000;

/** A shorter value stands beside others. */
const INLINE_CHARS = 32;
/** A field has to have a name, even one that shows nothing. */
const NO_NAME = '\u200b';
/** As of the Retry-After header: nobody stops us for longer. */
const MAX_RETRY_AFTER_MS = 3_600_000;
const COLOURS: Record<Severity, number> = { good: 0x2e9d5b, info: 0x3b82c4, warning: 0xe0a100, critical: 0xd0342c };

/** A webhook of a Discord channel. */
export function createDiscordChannel({ url, post }: ChatOptions): Channel {
  return createChatChannel({ url: confirmed(url), post, toBody: toDiscordBody, read: withRetryAfter });
}

/** Without `wait` Discord says yes before it has looked at the message. */
function confirmed(url: string): string {
  const target = URL.parse(url);
  target?.searchParams.set('wait', 'true');
  return target?.href ?? url;
}

const escaped = (char: string) => (/[!-/:-@[-`{-~]/.test(char) ? `\\${char}` : char);
/** In a code span only a backtick still means something. */
const inCode = escapeWith({ '`': "'" });

/** Exported for its limits, which no message of today reaches. */
export function toDiscordBody({ title, severity, lines }: Message): unknown {
  const heading = truncate(title, MAX_TITLE_CHARS, escaped);
  let room = MAX_EMBED_CHARS - heading.length;
  const fields: { name: string; value: string; inline: boolean }[] = [];
  for (const { label, value } of lines.slice(0, MAX_FIELDS)) {
    const name = label ?? NO_NAME;
    const code = `\`${truncate(value, MAX_VALUE_CHARS - 2, inCode)}\``;
    room -= name.length + code.length;
    if (room < 0) break;
    fields.push({ name, value: code, inline: label !== null && value.length <= INLINE_CHARS });
  }
  return { embeds: [{ title: heading, color: COLOURS[severity], fields }], allowed_mentions: { parse: [] } };
}

/** Discord says in the body how long to wait, in seconds with a fraction; the header may be missing or rounded. */
function withRetryAfter(result: SendResult): SendResult {
  if (result.kind === 'delivered' || result.httpStatus !== 429 || result.slowDown?.retryAfterMs) return result;
  const body = parseJson(result.response ?? '') as { retry_after?: unknown } | null | undefined;
  const seconds = body?.retry_after;
  if (typeof seconds !== 'number' || !(seconds > 0)) return result;
  return { ...result, slowDown: { retryAfterMs: Math.min(Math.ceil(seconds * 1_000), MAX_RETRY_AFTER_MS) } };
}
