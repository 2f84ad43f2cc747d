import { z } from 'zod';
import { httpUrl } from '../../operations/config/section-values.ts';
import { LINK_TEXT, type Line, type Message, type Severity, truncate } from '../message.ts';
import { type Channel, type ChannelType, type ChatOptions, createChatChannel } from './channel.ts';

/** Teams accepts 28 kB and counts more than the body; the lines beyond this limit are omitted. */
const MAX_BODY_BYTES = 20_000;
const MAX_TEXT_CHARS = 2_000;

const COLOURS: Record<Severity, string> = {
  good: 'Good',
  info: 'Default',
  warning: 'Warning',
  critical: 'Attention',
};

/** Posts an Adaptive Card to a workflow that starts with a webhook request. */
export function createTeamsChannel(options: ChatOptions): Channel {
  return createChatChannel({ ...options, toBody: toTeamsBody });
}

/** List and heading markup applies only at the start of a line, which `toText` sets. */
const escaped = (char: string) => (/[\\`*_{}[\]()#|~<>&]/.test(char) ? `\\${char}` : char);

function toTeamsBody({ title, severity, lines, link }: Message): unknown {
  const heading = block(truncate(title, MAX_TEXT_CHARS, escaped), {
    size: 'Medium',
    weight: 'Bolder',
    color: COLOURS[severity],
  });
  const blocks = lines.map((line) => block(toText(line), { spacing: 'Small' }));
  const links = link === null ? [] : [block(`[${LINK_TEXT}](${link})`, { spacing: 'Small' })];
  const whole = () => card([heading, ...blocks, ...links]);
  while (blocks.length > 0 && Buffer.byteLength(JSON.stringify(whole())) > MAX_BODY_BYTES)
    blocks.pop();
  return whole();
}

function card(body: unknown[]) {
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        contentUrl: null,
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body,
          msteams: { width: 'Full' },
        },
      },
    ],
  };
}

function block(text: string, style: Record<string, string>) {
  return { type: 'TextBlock', text, wrap: true, ...style };
}

function toText({ label, value }: Line): string {
  const start = label === null ? '• ' : `**${label}:** `;
  return `${start}${truncate(value, MAX_TEXT_CHARS - start.length, escaped)}`;
}

const settings = z.strictObject({
  type: z.literal('teams'),
  url: httpUrl.describe('Incoming webhook address'),
});

export const teams: ChannelType<z.output<typeof settings>> = {
  type: 'teams',
  settings,
  address: ({ url }) => url,
  create: ({ url }, deps) => createTeamsChannel({ url, ...deps }),
};
