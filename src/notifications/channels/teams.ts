import { LINK_TEXT, type Line, type Message, type Severity, truncate } from '../message.ts';
import type { Channel, SendResult } from './channel.ts';
import { type ChatOptions, createChatChannel } from './chat.ts';

/** Teams accepts 28 kB and counts more than the body; the lines beyond this limit are omitted. */
const MAX_BODY_BYTES = 20_000;
const MAX_TEXT_CHARS = 2_000;

const COLOURS: Record<Severity, string> = {
  good: 'Good',
  info: 'Default',
  warning: 'Warning',
  critical: 'Attention',
};

/**
 * Sends an Adaptive Card to an incoming webhook of Microsoft Teams or to its successor, a workflow.
 */
export function createTeamsChannel(options: ChatOptions): Channel {
  return createChatChannel({ ...options, toBody: toTeamsBody, read: ofConnector });
}

/**
 * List and heading markup needs no escaping: it applies only at the start of a line, which `toText`
 * sets.
 */
const escaped = (char: string) => (/[\\`*_{}[\]()#|~<>&]/.test(char) ? `\\${char}` : char);

/** Exported to test the limit, which current messages do not reach. */
export function toTeamsBody({ title, severity, lines, link }: Message): unknown {
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

/** The legacy connectors respond with 200 and report a refusal by Teams in the text. */
const CONNECTOR_ERROR = /Microsoft Teams endpoint returned HTTP error (\d{3})/;

function ofConnector(result: SendResult): SendResult {
  const refusal =
    result.kind === 'delivered' ? CONNECTOR_ERROR.exec(result.response ?? '')?.[1] : undefined;
  if (refusal === undefined) return result;
  return {
    ...result,
    kind: 'failed',
    error: `Teams responded to its connector with ${refusal}`,
    ...(refusal === '429' && { slowDown: { retryAfterMs: null } }),
  };
}
