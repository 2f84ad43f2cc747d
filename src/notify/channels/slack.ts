import type { Line } from '../messages/line.ts';
import type { Message, Severity } from '../messages/message.ts';
import { escapeWith, truncate } from '../messages/truncate.ts';
import type { Channel } from './channel.ts';
import { type ChatOptions, createChatChannel } from './chat.ts';

/** Slack refuses a message with more blocks, or with a longer text in one. */
const MAX_BLOCKS = 50;
const MAX_TEXT_CHARS = 3_000;

const SIGNS: Record<Severity, string> = { good: '✅', info: 'ℹ️', warning: '⚠️', critical: '🚨' };

/** An incoming webhook of Slack. */
export function createSlackChannel(options: ChatOptions): Channel {
  return createChatChannel({ ...options, toBody: toSlackBody });
}

/** With these three escaped nothing can be a mention or a link. */
const MARKUP = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escaped = escapeWith(MARKUP);
/** In a code span only a backtick still means something. */
const inCode = escapeWith({ ...MARKUP, '`': "'" });

function toSlackBody({ title, severity, lines, text }: Message): unknown {
  const heading = `${SIGNS[severity]} ${truncate(title, MAX_TEXT_CHARS - 10, escaped)}`;
  return {
    // For notifications and screen readers; where there are blocks it is not shown besides them.
    text: `${SIGNS[severity]} ${truncate(text, MAX_TEXT_CHARS - 10, escaped)}`,
    blocks: [section(heading), ...lines.slice(0, MAX_BLOCKS - 1).map((line) => section(toText(line)))],
    // What an upstream says shall not make Slack fetch an address.
    unfurl_links: false,
    unfurl_media: false,
  };
}

function toText({ label, value }: Line): string {
  const start = label === null ? '' : `*${label}* `;
  return `${start}\`${truncate(value, MAX_TEXT_CHARS - start.length - 2, inCode)}\``;
}

/** `verbatim`: names and addresses in it stay text. */
function section(text: string) {
  return { type: 'section', text: { type: 'mrkdwn', text, verbatim: true } };
}
