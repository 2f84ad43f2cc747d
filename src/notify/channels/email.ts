import { createTransport } from 'nodemailer';
import { retryDelayMs } from '../dispatch/retry-schedule.ts';
import { toMessage } from '../messages/message.ts';
import type { Channel, SendResult } from './channel.ts';
import { CHAT_BATCH, failed } from './chat.ts';
import { messageIdOf, toMail } from './mail.ts';

export type EmailOptions = {
  /** `smtps://user:password@host`, or `smtp://` with STARTTLS where the server has it. */
  smtpUrl: string;
  from: string;
  to: readonly string[];
};

const CONNECT_TIMEOUT_MS = 10_000;
/** After the mail's text a server may take its time: given up too soon, the mail comes twice. */
const SILENCE_TIMEOUT_MS = 120_000;

/**
 * Mail over SMTP, one for all recipients. As soon as one of them is taken it is delivered: another attempt would reach
 * those again that already have it. How many were refused stands in the response.
 */
export function createEmailChannel({ smtpUrl, from, to }: EmailOptions): Channel {
  const transport = createTransport({
    pool: true,
    url: smtpUrl,
    maxConnections: 2,
    // Once over a new connection, where a kept one turns out to be closed. All else is for the next attempt.
    maxRequeues: 1,
    connectionTimeout: CONNECT_TIMEOUT_MS,
    dnsTimeout: CONNECT_TIMEOUT_MS,
    greetingTimeout: CONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_TIMEOUT_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // What goes wrong with a connection between two mails shows at the next one.
  transport.on('error', () => undefined);
  return {
    maxBatch: CHAT_BATCH,
    retryDelayMs,
    async send(batch, signal) {
      const [first, ...others] = batch.map(({ event }) => event);
      if (!first) return failed('there is nothing to send');
      const messageId = messageIdOf([first, ...others], from);
      const mail = { ...toMail(toMessage([first, ...others])), from, to: [...to], messageId, signal };
      try {
        const { rejected, response } = await transport.sendMail(mail);
        return { kind: 'delivered', httpStatus: null, response: taken(rejected.length, to.length, response) };
      } catch (error) {
        return signal.aborted ? failed('the attempt was stopped') : refusal(error as SmtpError);
      }
    },
    async close() {
      transport.close({ force: true });
    },
  };
}

type SmtpError = { code?: string; command?: string; responseCode?: number; originalCode?: string };

/** Servers quote recipients, so of what they answer only the numbers are kept. */
function taken(refused: number, all: number, response: string): string {
  const code = /^\d{3}(?:[ -]\d\.\d+\.\d+)?/.exec(response)?.[0] ?? '';
  return refused === 0 ? code : `${code}; ${refused} of ${all} recipients refused`;
}

/** By its codes only: messages quote addresses and logins. 4xx means "not now". */
function refusal({ code = '', command = '', responseCode, originalCode = '' }: SmtpError): SendResult {
  if (responseCode !== undefined) {
    const to = /^[A-Z ]{1,20}$/.test(command) ? ` to ${command}` : '';
    const temporary = responseCode >= 400 && responseCode < 500;
    const error = `the mail server answered ${responseCode}${to}`;
    const more = temporary ? { slowDown: { retryAfterMs: null } } : { refused: true };
    return { kind: 'failed', httpStatus: null, error, response: null, ...more };
  }
  if (code === 'ETIMEDOUT') return failed('the mail server did not answer in time');
  const cause = [originalCode, code].find((each) => /^[A-Z]{1,30}$/.test(each));
  return failed(`no mail server took it${cause ? ` (${cause})` : ''}`);
}
