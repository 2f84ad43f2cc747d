import { createHash } from 'node:crypto';
import { z } from 'zod';
import { withTimeout } from '../../lib/clock.ts';
import { causeOf, isTlsError } from '../../lib/http-call.ts';
import { address } from '../../operations/config/section-values.ts';
import { AlertEventType } from '../../submissions/event-types.ts';
import type { EventRecord } from '../event-body.ts';
import {
  escapeWith,
  LINK_TEXT,
  type Line,
  type Message,
  type Severity,
  toMessage,
} from '../message.ts';
import {
  CHAT_BATCH,
  type Channel,
  type ChannelType,
  failed,
  peopleRetryDelayMs,
  type SendResult,
} from './channel.ts';

const SENDER =
  /^(?:"?([^<>"\r\n]*?)"?\s*<([^\s@<>",;]+@[^\s@<>",;]+)>|([^\s@<>",;]+@[^\s@<>",;]+))$/;

const settings = z.strictObject({
  type: z.literal('email'),
  smtp_url: address('smtp', 'smtps')
    .refine(
      (text) => /^[a-z]+:\/\/[^/?]+\/?$/i.test(text),
      'must be an address that ends with its host or port',
    )
    .describe('Mail server: smtp://user:password@host:587'),
  tls: z
    .enum(['require', 'opportunistic', 'off'])
    .optional()
    .describe(
      'Whether smtp:// uses STARTTLS: `require` sends nothing without it, `opportunistic` uses it if the server offers it, `off` does not. Default: `require` with a login in `smtp_url`, otherwise `opportunistic`. smtps:// always uses TLS',
    ),
  from: z
    .string()
    .max(320)
    .refine(
      (text) => SENDER.test(text),
      'must be an e-mail address, or a name with one: dawatch <dawatch@example.com>',
    )
    .describe('Sender address'),
  to: z.array(z.email('must be an e-mail address')).min(1).max(50).describe('Recipient addresses'),
});
type EmailSettings = z.output<typeof settings>;
type MailServer = Omit<EmailSettings, 'type' | 'from' | 'to'>;

export const email: ChannelType<EmailSettings> = {
  type: 'email',
  settings,
  address: ({ smtp_url }) => smtp_url,
  receiver: ({ to }) => `to ${to.join(', ')}`,
  create: (settings, { publicUrl }) => createEmailChannel({ ...settings, publicUrl }),
  check: checkMailServer,
};

const MAX_REPLY_CHARS = 200;
const CONNECT_TIMEOUT_MS = 10_000;
/** A server may take long to accept the body; a shorter timeout would send the mail twice. */
const SILENCE_TIMEOUT_MS = 120_000;

async function openTransport(server: MailServer, limitMs?: number) {
  const { smtp_url, tls } = server;
  const { username, password } = new URL(smtp_url);
  const policy = tls ?? (username === '' && password === '' ? 'opportunistic' : 'require');
  // Loaded on demand, because importing it would slow every start.
  const { createTransport } = await import('nodemailer');
  return createTransport({
    pool: true,
    url: smtp_url,
    maxConnections: 2,
    // One retry on a new connection if a pooled one was closed. The dispatcher makes all other
    // retries.
    maxRequeues: 1,
    connectionTimeout: limitMs ?? CONNECT_TIMEOUT_MS,
    dnsTimeout: limitMs ?? CONNECT_TIMEOUT_MS,
    greetingTimeout: limitMs ?? CONNECT_TIMEOUT_MS,
    socketTimeout: limitMs ?? SILENCE_TIMEOUT_MS,
    requireTLS: policy === 'require',
    ignoreTLS: policy === 'off',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

/** Logs in and sends no mail. undefined: it works. `answered`: a retry does not help. */
export async function checkMailServer(
  server: MailServer,
  limitMs: number,
): Promise<{ error: string; answered: boolean } | undefined> {
  const transport = await openTransport(server, limitMs);
  const verified = transport.verify().then(
    () => undefined,
    (error: SmtpError) => {
      const answered = error.responseCode !== undefined || isTlsError(connectionError(error));
      return { error: reasonOf(error), answered };
    },
  );
  const isLate = (await withTimeout(limitMs, verified)) === 'late';
  transport.close({ force: true });
  return isLate ? { error: NO_RESPONSE, answered: false } : verified;
}

/**
 * Delivered if one recipient is accepted: a retry would reach accepted recipients twice. The
 * response is the reply of the mail server and the number of refused recipients.
 */
export async function createEmailChannel({
  from,
  to,
  publicUrl,
  ...server
}: MailServer & {
  from: string;
  to: readonly string[];
  publicUrl?: string | undefined;
}): Promise<Channel> {
  const transport = await openTransport(server);
  const sender = senderOf(from);
  // Errors of an idle connection appear in the next send.
  transport.on('error', () => undefined);
  return {
    address: server.smtp_url,
    maxBatch: CHAT_BATCH,
    retryDelayMs: peopleRetryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('the batch is empty');
      const mail = {
        ...toMail(toMessage([first, ...others], publicUrl)),
        ...threadOf([first, ...others], sender.address),
        from: sender,
        to: [...to],
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

/** Returns the reply of the server without mail addresses, because servers quote recipients. */
function summaryOf(refused: number, all: number, response: string): string {
  const reply = response
    .slice(0, MAX_REPLY_CHARS)
    .replace(/\S+/g, (word) => (word.includes('@') ? '…' : word));
  return refused === 0 ? reply : `${reply}; ${refused} of ${all} recipients refused`;
}

const NO_RESPONSE = 'the mail server did not respond in time';

/** 4xx is a temporary failure. Without TLS there is no session, so the mail is not refused. */
function refusal(error: SmtpError): SendResult {
  const { responseCode, command } = error;
  if (responseCode === undefined || command === 'STARTTLS') return failed(reasonOf(error));
  const temporary = responseCode >= 400 && responseCode < 500;
  const more = temporary ? { slowDown: { retryAfterMs: null } } : { refused: true };
  return { ...failed(reasonOf(error)), ...more };
}

/** Uses only the codes of an error, because its message quotes addresses and logins. */
function reasonOf(error: SmtpError): string {
  const { code = '', command = '', responseCode } = error;
  if (responseCode !== undefined) {
    if (command === 'STARTTLS')
      return `the mail server offers no TLS (${responseCode} to STARTTLS), which the setting tls requires`;
    const to = /^[A-Z ]{1,20}$/.test(command) ? ` to ${command}` : '';
    return `the mail server responded with ${responseCode}${to}`;
  }
  if (code === 'ETIMEDOUT') return NO_RESPONSE;
  if (code === 'EPROTOCOL') return 'the response is not SMTP';
  const sentence = causeOf(connectionError(error)) ?? (/^[A-Z]{1,30}$/.test(code) ? code : '');
  return `the mail could not be sent${sentence && `: ${sentence}`}`;
}

/** Returns the error below nodemailer's own, such as a certificate that is not trusted. */
function connectionError({ code, originalCode = code }: SmtpError): Error {
  const errno = originalCode === 'ECONNECTION' ? 'ECONNRESET' : originalCode;
  return Object.assign(new Error(), { code: errno });
}

const COLOURS: Record<Severity, string> = {
  good: '#2e9d5b',
  info: '#3b82c4',
  warning: '#b87d00',
  critical: '#d0342c',
};

const escaped = escapeWith({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' });
const html = (text: string) => Array.from(text, escaped).join('');

/** Only the subject has the title. It has no line break, so it cannot inject a header. */
export function toMail({ title, severity, lines, body, link }: Message) {
  return {
    subject: `[dawatch] ${title}`,
    text: `${body}\n`,
    html: [
      '<!doctype html><html><body style="font-family:sans-serif">',
      `<table cellpadding="4" style="border-collapse:collapse;border-left:4px solid ${COLOURS[severity]};font-size:14px">${lines.map(row).join('')}</table>`,
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

const MAX_REFERENCES = 20;

/**
 * The same events always produce the same Message-ID, so that a repeated mail can be recognized.
 * Mails about an alert refer to the one about its beginning, so that they are shown as one thread.
 */
function threadOf(batch: readonly [EventRecord, ...EventRecord[]], sender: string) {
  const [first] = batch;
  const domain = /@([a-z0-9.-]+)$/i.exec(sender)?.[1] ?? 'dawatch.invalid';
  const idOf = (local: string) => `<${local.replace(/[^\w.-]/g, '_')}@${domain}>`;
  const ids = createHash('sha256').update(batch.map(({ id }) => id).join('\n'));
  const local = batch.length === 1 ? first.id : `${first.id}.${ids.digest('hex').slice(0, 16)}`;
  // With the time, because the alerts of another installation have the same numbers.
  const alerts = batch.flatMap((event) =>
    'alert' in event ? [idOf(`alert.${event.alert.id}.${event.alert.since}`)] : [],
  );
  const [alert] = alerts;
  if (alert === undefined) return { messageId: idOf(local) };
  if (batch.length === 1 && first.type === AlertEventType.raised) return { messageId: alert };
  return {
    messageId: idOf(local),
    inReplyTo: alert,
    references: alerts.slice(0, MAX_REFERENCES),
  };
}

/** Returns name and address separately, because a comma in a name would begin another address. */
function senderOf(text: string): { name: string; address: string } {
  const [, name = '', inBrackets, bare = ''] = SENDER.exec(text) ?? [];
  return { name, address: inBrackets ?? bare };
}
