import { createHash } from 'node:crypto';
import { createTransport } from 'nodemailer';
import type { EventRecord } from '../event-body.ts';
import {
  escapeWith,
  LINK_TEXT,
  type Line,
  type Message,
  type Severity,
  toMessage,
} from '../message.ts';
import { type Channel, failed, retryDelayMs, type SendResult } from './channel.ts';
import { CHAT_BATCH } from './chat.ts';

export type EmailOptions = {
  /** `smtps://user:password@host`, or `smtp://` with STARTTLS if the server supports it. */
  smtpUrl: string;
  from: string;
  to: readonly string[];
  /** Returns the setting `server.public_url`, for links. Default: none. */
  publicUrl?: (() => string | undefined) | undefined;
};

const CONNECT_TIMEOUT_MS = 10_000;
/**
 * A server may take long to accept the message body; a shorter timeout would send the mail twice.
 */
const SILENCE_TIMEOUT_MS = 120_000;

/**
 * Sends one mail over SMTP to all recipients. It counts as delivered if the server accepts at least
 * one recipient, because a retry would reach accepted recipients twice. The response contains the
 * number of refused recipients.
 */
export function createEmailChannel({ smtpUrl, from, to, publicUrl }: EmailOptions): Channel {
  const transport = createTransport({
    pool: true,
    url: smtpUrl,
    maxConnections: 2,
    // One retry on a new connection if a pooled one was closed. The dispatcher makes all other
    // retries.
    maxRequeues: 1,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    dnsTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // Errors of an idle connection appear in the next send.
  transport.on('error', () => undefined);
  return {
    maxBatch: CHAT_BATCH,
    retryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('the batch is empty');
      const messageId = messageIdOf([first, ...others], from);
      const mail = {
        ...toMail(toMessage([first, ...others], publicUrl?.())),
        from,
        to: [...to],
        messageId,
        signal,
      };
      try {
        const { rejected, response } = await transport.sendMail(mail);
        return {
          kind: 'delivered',
          httpStatus: null,
          response: summaryOf(rejected.length, to.length, response),
        };
      } catch (error) {
        return signal.aborted ? failed('the attempt was aborted') : refusal(error as SmtpError);
      }
    },
    async close() {
      transport.close({ force: true });
    },
  };
}

type SmtpError = { code?: string; command?: string; responseCode?: number; originalCode?: string };

/** Keeps only the codes of a response, because servers quote recipients. */
function summaryOf(refused: number, all: number, response: string): string {
  const code = /^\d{3}(?:[ -]\d\.\d+\.\d+)?/.exec(response)?.[0] ?? '';
  return refused === 0 ? code : `${code}; ${refused} of ${all} recipients refused`;
}

/**
 * Uses only the codes of an error, because its message quotes addresses and logins. 4xx is a
 * temporary failure.
 */
function refusal({
  code = '',
  command = '',
  responseCode,
  originalCode = '',
}: SmtpError): SendResult {
  if (responseCode !== undefined) {
    const to = /^[A-Z ]{1,20}$/.test(command) ? ` to ${command}` : '';
    const temporary = responseCode >= 400 && responseCode < 500;
    const error = `the mail server responded with ${responseCode}${to}`;
    const more = temporary ? { slowDown: { retryAfterMs: null } } : { refused: true };
    return { kind: 'failed', httpStatus: null, error, response: null, ...more };
  }
  if (code === 'ETIMEDOUT') return failed('the mail server did not respond in time');
  const cause = [originalCode, code].find((each) => /^[A-Z]{1,30}$/.test(each));
  return failed(`the mail could not be sent${cause ? ` (${cause})` : ''}`);
}

const COLOURS: Record<Severity, string> = {
  good: '#2e9d5b',
  info: '#3b82c4',
  warning: '#b87d00',
  critical: '#d0342c',
};

const escaped = escapeWith({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' });
const html = (text: string) => Array.from(text, escaped).join('');

/**
 * Formats a message as text and HTML. The title contains no line break, so the subject cannot
 * inject a header.
 */
export function toMail({ title, severity, lines, text, link }: Message) {
  return {
    subject: `[dawatch] ${title}`,
    text: `${text}\n`,
    html: [
      '<!doctype html><html><body style="font-family:sans-serif">',
      `<h2 style="color:${COLOURS[severity]};font-size:18px">${html(title)}</h2>`,
      `<table cellpadding="4" style="border-collapse:collapse;font-size:14px">${lines.map(row).join('')}</table>`,
      ...(link === null ? [] : [`<p><a href="${html(link)}">${LINK_TEXT}</a></p>`]),
      '</body></html>',
    ].join('\n'),
    // Prevents automatic replies.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  };
}

function row({ label, value }: Line): string {
  const cell = `<td style="font-family:monospace;word-break:break-all">${html(value)}</td>`;
  return `<tr><td style="color:#666;vertical-align:top">${html(label ?? '')}</td>${cell}</tr>\n`;
}

/**
 * The same events always produce the same Message-ID, so that a repeated mail can be recognized.
 */
function messageIdOf(batch: readonly [EventRecord, ...EventRecord[]], from: string): string {
  const [first] = batch;
  const ids = createHash('sha256').update(batch.map(({ id }) => id).join('\n'));
  const local = batch.length === 1 ? first.id : `${first.id}.${ids.digest('hex').slice(0, 16)}`;
  const domain = /@([a-z0-9.-]+)>?\s*$/i.exec(from)?.[1] ?? 'dawatch.invalid';
  return `<${local.replace(/[^\w.-]/g, '_')}@${domain}>`;
}
