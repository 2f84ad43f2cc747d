import type { Line } from '../messages/line.ts';
import type { Message, Severity } from '../messages/message.ts';
import { truncate } from '../messages/truncate.ts';
import type { Channel, SendResult } from './channel.ts';
import { type ChatOptions, createChatChannel } from './chat.ts';

/** Teams takes 28 kB and counts more than what is sent, so the rest of a longer card is left out. */
const MAX_BODY_BYTES = 20_000;
const MAX_TEXT_CHARS = 2_000;

const COLOURS: Record<Severity, string> = {
  good: 'Good',
  info: 'Default',
  warning: 'Warning',
  critical: 'Attention',
};

/** An incoming webhook of Microsoft Teams, or the "Workflows" that came after it: an Adaptive Card. */
export function createTeamsChannel(options: ChatOptions): Channel {
  return createChatChannel({ ...options, toBody: toTeamsBody, read: ofConnector });
}

/** What makes a list or a heading only does so at the start of a line, where `toText` leaves nothing from outside. */
const escaped = (char: string) => (/[\\`*_{}[\]()#|~<>&]/.test(char) ? `\\${char}` : char);

/** Exported for its limit, which no message of today reaches. */
export function toTeamsBody({ title, severity, lines }: Message): unknown {
  const heading = block(truncate(title, MAX_TEXT_CHARS, escaped), {
    size: 'Medium',
    weight: 'Bolder',
    color: COLOURS[severity],
  });
  const blocks = lines.map((line) => block(toText(line), { spacing: 'Small' }));
  while (blocks.length > 0 && Buffer.byteLength(JSON.stringify(card([heading, ...blocks]))) > MAX_BODY_BYTES)
    blocks.pop();
  return card([heading, ...blocks]);
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

function block(text: string, looks: Record<string, string>) {
  return { type: 'TextBlock', text, wrap: true, ...looks };
}

function toText({ label, value }: Line): string {
  const start = label === null ? '• ' : `**${label}:** `;
  return `${start}${truncate(value, MAX_TEXT_CHARS - start.length, escaped)}`;
}

/** The old connectors answer 200 and say in the text that Teams refused. */
const CONNECTOR_ERROR = /Microsoft Teams endpoint returned HTTP error (\d{3})/;

function ofConnector(result: SendResult): SendResult {
  const refusal = result.kind === 'delivered' ? CONNECTOR_ERROR.exec(result.response ?? '')?.[1] : undefined;
  if (refusal === undefined) return result;
  return {
    ...result,
    kind: 'failed',
    error: `Teams answered its connector with ${refusal}`,
    ...(refusal === '429' && { slowDown: { retryAfterMs: null } }),
  };
}
