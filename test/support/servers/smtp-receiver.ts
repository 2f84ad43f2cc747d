import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';
import { type Mail, parseMail } from './mime.ts';

type ReceivedMail = Mail & { recipients: string[] };

type SmtpReceiverOptions = {
  login?: { user: string; password: string };
  /** Returns the code with which a recipient is refused; undefined to accept it. */
  refuse?: (recipient: string) => number | undefined;
  /** The code with which the mail is refused after all recipients were accepted. */
  refuseData?: number;
};

/** A mail server on a free port, closed with its connections when the test ends. */
export async function openSmtpReceiver({ login, refuse, refuseData }: SmtpReceiverOptions = {}) {
  const mails: ReceivedMail[] = [];
  let sessions = 0;
  const options: SMTPServerOptions = {
    authOptional: login === undefined,
    disabledCommands: login ? ['STARTTLS'] : ['STARTTLS', 'AUTH'],
    allowInsecureAuth: true,
    logger: false,
    closeTimeout: 1,
    onConnect(_session, done) {
      sessions += 1;
      done();
    },
    onAuth({ username, password }, _session, done) {
      if (username === login?.user && password === login?.password) done(null, { user: username });
      else done(refusal(535, `no such login: ${username}`));
    },
    onRcptTo({ address }, _session, done) {
      const code = refuse?.(address);
      done(code === undefined ? null : refusal(code, `<${address}> not here`));
    },
    async onData(stream, { envelope }, done) {
      const raw = await text(stream);
      if (refuseData !== undefined) return done(refusal(refuseData, 'not this one'));
      mails.push({ ...parseMail(raw), recipients: envelope.rcptTo.map(({ address }) => address) });
      // Some servers quote the recipient in their response.
      done(null, `taken for ${envelope.rcptTo.map(({ address }) => address).join()}`);
    },
  };
  const server = new SMTPServer(options);
  // Some tests cover clients that disconnect in the middle.
  server.on('error', () => undefined);
  const listener = server.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const { port } = listener.address() as AddressInfo;
  const credentials = login ? `${login.user}:${encodeURIComponent(login.password)}@` : '';
  return {
    url: `smtp://${credentials}127.0.0.1:${port}`,
    mails,
    connections: { open: () => server.connections.size, total: () => sessions },
  };
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}
