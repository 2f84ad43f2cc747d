import { z } from 'zod';
import { httpUrl } from '../../operations/config/section-values.ts';
import {
  escapeWith,
  LINK_TEXT,
  type Line,
  type Message,
  type Severity,
  truncate,
} from '../message.ts';
import { type Channel, type ChannelType, type ChatOptions, createChatChannel } from './channel.ts';

const MAX_BLOCKS = 50;
const MAX_TEXT_CHARS = 3_000;

const SIGNS: Record<Severity, string> = { good: '✅', info: 'ℹ️', warning: '⚠️', critical: '🚨' };

export function createSlackChannel(options: ChatOptions): Channel {
  return createChatChannel({ ...options, toBody: toSlackBody });
}

/** Escaping these three disables mentions and links. */
const MARKUP = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
const escaped = escapeWith(MARKUP);
/** In a code span only a backtick has to be escaped. */
const inCode = escapeWith({ ...MARKUP, '`': "'" });

function toSlackBody({ title, severity, lines, text, link }: Message): unknown {
  const heading = `${SIGNS[severity]} ${truncate(title, MAX_TEXT_CHARS - 10, escaped)}`;
  return {
    // Used in notifications and by screen readers; clients show the blocks instead.
    text: `${SIGNS[severity]} ${truncate(text, MAX_TEXT_CHARS - 10, escaped)}`,
    blocks: [
      section(heading),
      ...lines.slice(0, MAX_BLOCKS - 2).map((line) => section(toText(line))),
      ...(link === null ? [] : [section(`<${link}|${LINK_TEXT}>`)]),
    ],
    // Text of an upstream must not make Slack fetch a URL.
    unfurl_links: false,
    unfurl_media: false,
  };
}

function toText({ label, value }: Line): string {
  const start = label === null ? '' : `*${label}* `;
  return `${start}\`${truncate(value, MAX_TEXT_CHARS - start.length - 2, inCode)}\``;
}

/** `verbatim` disables automatic links to names and URLs. */
function section(text: string) {
  return { type: 'section', text: { type: 'mrkdwn', text, verbatim: true } };
}

const settings = z.strictObject({
  type: z.literal('slack'),
  url: httpUrl.describe('Incoming webhook address'),
});

export const slack: ChannelType<z.output<typeof settings>> = {
  type: 'slack',
  settings,
  address: ({ url }) => url,
  create: ({ url }, deps) => createSlackChannel({ url, ...deps }),
};
