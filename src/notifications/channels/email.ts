import { createHash } from 'node:crypto';
import type { NodemailerError } from 'nodemailer';
import { LruMap } from 'toad-cache';
import { z } from 'zod';
import { withTimeout } from '../../lib/clock.ts';
import { causeOf, isTlsError } from '../../lib/http-call.ts';
import { hostUrl } from '../../operations/config/section-values.ts';
import type { EventRecord } from '../event-body.ts';
import { toMessage } from '../message.ts';
import {
  CHAT_BATCH,
  type Channel,
  type ChannelType,
  failed,
  peopleRetryDelayMs,
} from './channel.ts';

const SENDER =
  /^(?:"?([^<>"\r\n]*?)"?\s*<([^\s@<>",;]+@[^\s@<>",;]+)>|([^\s@<>",;]+@[^\s@<>",;]+))$/;

const settings = z.strictObject({
  type: z.literal('email'),
  smtp_url: hostUrl('smtp', 'smtps').describe('Mail server: smtp://user:password@host:587'),
  tls: z
    .enum(['require', 'opportunistic', 'off'])
    .optional()
    .describe(
      'Whether smtp:// uses STARTTLS: `require` sends nothing without it, `opportunistic` uses it if the server offers it, and sends without TLS and login if that fails, `off` does not. Default: `require` with a login in `smtp_url`, otherwise `opportunistic`. smtps:// always uses TLS',
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
/** Events of which some recipients were refused with 4xx. A retry of others would reach all. */
const MAX_DEFERRED = 10_000;
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
    opportunisticTLS: policy === 'opportunistic',
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
    (error: NodemailerError) => {
      const answered = error.responseCode !== undefined || isTlsError(connectionError(error));
      return { error: reasonOf(error), answered };
    },
  );
  const isLate = (await withTimeout(limitMs, verified)) === 'late';
  transport.close({ force: true });
  return isLate ? { error: NO_RESPONSE, answered: false } : verified;
}

/** A retry reaches only the recipients that were refused with 4xx. */
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
  /** Who still gets an event. After a restart, all do. */
  const deferred = new LruMap<readonly string[]>(MAX_DEFERRED);
  // Errors of an idle connection appear in the next send.
  transport.on('error', () => undefined);
  return {
    address: server.smtp_url,
    maxBatch: CHAT_BATCH,
    retryDelayMs: peopleRetryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('the batch is empty');
      const { title, body } = toMessage([first, ...others], publicUrl);
      const recipients = [...new Set(batch.flatMap(({ event }) => deferred.get(event.id) ?? to))];
      const mail = {
        // The title has no line break, so that it cannot inject a header.
        subject: `[dawatch] ${title}`,
        text: `${body}\n`,
        // Prevents automatic replies.
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
        messageId: messageIdOf([first, ...others], sender.address),
        from: sender,
        to: [...to],
        envelope: { from: sender.address, to: recipients },
        signal,
      };
      /** Returns whether the mail is sent again, to those that were refused for now. */
      const defer = ({ rejectedErrors = [] }: Pick<NodemailerError, 'rejectedErrors'>) => {
        const refused = rejectedErrors.filter(({ permanent }) => !permanent);
        const again = refused.map(({ recipient = '' }) => recipient);
        if (again.length > 0) for (const { event } of batch) deferred.set(event.id, again);
        return again.length > 0;
      };
      try {
        const sent = await transport.sendMail(mail);
        const response = replyOf(sent.response);
        const warning = refusalsOf(sent, recipients.length);
        if (warning !== undefined && defer(sent))
          return { ...failed(warning), response, refused: true };
        for (const { event } of batch) deferred.delete(event.id);
        return { kind: 'delivered', httpStatus: null, response, ...(warning && { warning }) };
      } catch (error) {
        if (signal.aborted) return failed('the attempt was aborted');
        const isRest = defer(error as NodemailerError) && recipients.length < to.length;
        const result = refusal(error as NodemailerError);
        // The other recipients show that the server works.
        return isRest ? { ...failed(result.error), refused: true } : result;
      }
    },
    async close() {
      transport.close({ force: true });
    },
  };
}

/** Returns the reply of the server without mail addresses, because servers quote recipients. */
function replyOf(response: string): string {
  return response
    .slice(0, MAX_REPLY_CHARS)
    .replace(/\S+/g, (word) => (word.includes('@') ? '…' : word));
}

function refusalsOf(
  { rejectedErrors = [] }: Pick<NodemailerError, 'rejectedErrors'>,
  recipients: number,
): string | undefined {
  if (rejectedErrors.length === 0) return undefined;
  const codes = new Set(rejectedErrors.map(({ responseCode }) => responseCode));
  return `${rejectedErrors.length} of ${recipients} recipients refused (${[...codes].join(', ')})`;
}

const NO_RESPONSE = 'the mail server did not respond in time';

/** Without TLS there is no session, so the mail is not refused. */
function refusal(error: NodemailerError) {
  const { responseCode, command } = error;
  if (responseCode === undefined || command === 'STARTTLS') return failed(reasonOf(error));
  const more = error.permanent ? { refused: true } : { slowDown: { retryAfterMs: null } };
  return { ...failed(reasonOf(error)), ...more };
}

/** Uses only the codes of an error, because its message quotes addresses and logins. */
function reasonOf(error: NodemailerError): string {
  const { code = '', command = '', responseCode } = error;
  if (responseCode !== undefined) {
    if (command === 'STARTTLS') {
      const isUnknown = responseCode === 500 || responseCode === 502;
      return `the mail server offers ${isUnknown ? 'no TLS' : 'TLS and refuses it'} (${responseCode} to STARTTLS), which the setting tls requires`;
    }
    const to = /^[A-Z ]{1,20}$/.test(command) ? ` to ${command}` : '';
    return `the mail server responded with ${responseCode}${to}`;
  }
  if (code === 'ETIMEDOUT') return NO_RESPONSE;
  if (code === 'EPROTOCOL') return 'the response is not SMTP';
  const sentence = causeOf(connectionError(error)) ?? (/^[A-Z]{1,30}$/.test(code) ? code : '');
  return `the mail could not be sent${sentence && `: ${sentence}`}`;
}

/** Returns the error below nodemailer's own, such as a certificate that is not trusted. */
function connectionError({ code, originalCode = code }: NodemailerError): Error {
  const errno = originalCode === 'ECONNECTION' ? 'ECONNRESET' : originalCode;
  return Object.assign(new Error(), { code: errno });
}

/** The same events always have the same Message-ID: a repeated mail can be recognized. */
function messageIdOf(batch: readonly EventRecord[], sender: string): string {
  const domain = /@([a-z0-9.-]+)$/i.exec(sender)?.[1] ?? 'dawatch.invalid';
  const ids = createHash('sha256').update(batch.map(({ id }) => id).join('\n'));
  return `<${ids.digest('hex').slice(0, 32)}@${domain}>`;
}

/** Returns name and address separately, because a comma in a name would begin another address. */
function senderOf(text: string): { name: string; address: string } {
  const [, name = '', inBrackets, bare = ''] = SENDER.exec(text) ?? [];
  return { name, address: inBrackets ?? bare };
}
