import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { onTestFinished } from 'vitest';

type ReceivedMail = Mail & {
  recipients: string[];
  /** Whether it arrived over TLS, and the name of the client in EHLO. */
  secure: boolean;
  ehlo: string;
};

type SmtpReceiverOptions = {
  login?: { user: string; password: string };
  /** Returns the code with which a recipient is refused; undefined to accept it. */
  refuse?: (recipient: string) => number | undefined;
  /** The code with which the mail is refused after all recipients were accepted. */
  refuseData?: number;
  /** Offers STARTTLS with this certificate; with `smtps`, begins with TLS. */
  tls?: { key: string; cert: string; smtps?: boolean };
};

/** A mail server on a free port, closed with its connections when the test ends. */
export async function openSmtpReceiver({
  login,
  refuse,
  refuseData,
  tls,
}: SmtpReceiverOptions = {}) {
  const mails: ReceivedMail[] = [];
  let sessions = 0;
  const logins: { secure: boolean }[] = [];
  const options: SMTPServerOptions = {
    authOptional: login === undefined,
    disabledCommands: [...(tls ? [] : ['STARTTLS']), ...(login ? [] : ['AUTH'])],
    secure: tls?.smtps === true,
    ...tls,
    allowInsecureAuth: true,
    logger: false,
    closeTimeout: 1,
    onConnect(_session, done) {
      sessions += 1;
      done();
    },
    onAuth({ username, password }, { secure }, done) {
      logins.push({ secure });
      if (username === login?.user && password === login?.password) done(null, { user: username });
      else done(refusal(535, `no such login: ${username}`));
    },
    onRcptTo({ address }, _session, done) {
      const code = refuse?.(address);
      done(code === undefined ? null : refusal(code, `<${address}> not here`));
    },
    async onData(stream, { envelope, secure, hostNameAppearsAs }, done) {
      const raw = await text(stream);
      if (refuseData !== undefined) return done(refusal(refuseData, 'not this one'));
      const recipients = envelope.rcptTo.map(({ address }) => address);
      mails.push({ ...parseMail(raw), recipients, secure, ehlo: hostNameAppearsAs });
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
    url: `${tls?.smtps ? 'smtps' : 'smtp'}://${credentials}127.0.0.1:${port}`,
    mails,
    /** Attempts to log in. */
    logins,
    connections: { open: () => server.connections.size, total: () => sessions },
  };
}

function refusal(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

export type Mail = {
  /** By name in lower case; repeated headers are joined. */
  headers: Map<string, string[]>;
  subject: string;
  text: string;
};

/** A mail of one text, limited to the MIME features that the tests use. */
function parseMail(raw: string): Mail {
  const { headers, body } = parsePart(raw);
  const encoding = headers.get('content-transfer-encoding')?.[0] ?? '7bit';
  return {
    headers,
    subject: decodeWords(headers.get('subject')?.[0] ?? ''),
    text: decodeBody(body, encoding),
  };
}

function parsePart(raw: string): { headers: Map<string, string[]>; body: string } {
  const text = raw.replace(/^\r\n/, '');
  const end = text.indexOf('\r\n\r\n');
  const headers = new Map<string, string[]>();
  const unfolded = text.slice(0, end).replace(/\r\n[ \t]+/g, ' ');
  for (const line of unfolded.split('\r\n')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, colon).toLowerCase();
    headers.set(name, [...(headers.get(name) ?? []), line.slice(colon + 1).trim()]);
  }
  return { headers, body: text.slice(end + 4) };
}

function decodeBody(body: string, encoding: string): string {
  const lines = body.replace(/\r\n$/, '');
  if (encoding === 'base64')
    return Buffer.from(lines, 'base64').toString('utf8').replaceAll('\r\n', '\n');
  return (
    encoding === 'quoted-printable' ? unquoted(lines.replace(/=\r\n/g, '')) : lines
  ).replaceAll('\r\n', '\n');
}

/** `=C3=BC` is two bytes of one character. */
function unquoted(text: string): string {
  const bytes = text.replace(/=([\da-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** `=?UTF-8?Q?…?=` and `=?UTF-8?B?…?=`; whitespace between two of them is ignored. */
function decodeWords(value: string): string {
  const words = /=\?utf-8\?([qb])\?([^?]*)\?=/gi;
  return value.replace(/\?=\s+=\?/g, '?==?').replace(words, (_all, kind: string, text: string) => {
    if (kind.toLowerCase() === 'b') return Buffer.from(text, 'base64').toString('utf8');
    return unquoted(text.replaceAll('_', ' '));
  });
}
