import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkMailServer, createEmailChannel } from '../../src/notifications/channels/email.ts';
import { createAuthority } from '../support/redis/certificates.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';
import { deadAddress, serveRaw } from '../support/servers/upstream-server.ts';
import { describeChannel, expectEscaped, type Rig } from './channel-conformance.ts';
import {
  alertEvent,
  failedEvent,
  HOSTILE_TEXTS,
  outgoing,
  upstreamEvent,
} from './sample-events.ts';

const LOGIN = { user: 'watcher', password: 'S3cret:p@ss/word' };
const FROM = 'dawatch <dawatch@example.org>';
const TO = ['one@private.example', 'two@private.example', 'three@private.example'];

type ReceiverOptions = Parameters<typeof openSmtpReceiver>[0];

/** A mail server that requires this login, and the result of sending one event to it. */
async function sentOver(
  settings: Partial<Parameters<typeof createEmailChannel>[0]>,
  options: ReceiverOptions = {},
) {
  const receiver = await openSmtpReceiver({ login: LOGIN, ...options });
  const server = { smtp_url: receiver.url, ...settings };
  const channel = await createEmailChannel({ from: FROM, to: TO, ...server });
  onTestFinished(() => channel.close());
  const result = await channel.send([outgoing(failedEvent())], new AbortController().signal);
  const check = await checkMailServer(server, 120_000);
  return { result, check, receiver };
}

async function rig(options: ReceiverOptions = {}, to = TO) {
  const receiver = await openSmtpReceiver({ login: LOGIN, ...options });
  const server = { smtp_url: receiver.url, tls: 'off', publicUrl: 'https://w.example' } as const;
  const channel = await createEmailChannel({ ...server, from: FROM, to });
  onTestFinished(() => channel.close());
  const send = (...events: Parameters<typeof outgoing>[0][]) =>
    channel.send(events.map(outgoing), new AbortController().signal);
  return { channel, receiver, send };
}

async function rigOf(options?: ReceiverOptions): Promise<Rig> {
  const { channel, receiver } = await rig(options);
  const received = () =>
    receiver.mails.map((mail) => JSON.stringify({ ...mail, headers: [...mail.headers] }));
  return { channel, received, connections: receiver.connections.open };
}

async function rigAt(url: string, connections: () => number): Promise<Rig> {
  const smtp_url = url
    .replace('http:', `smtp:`)
    .replace('//', `//${LOGIN.user}:${encodeURIComponent(LOGIN.password)}@`);
  return {
    channel: await createEmailChannel({ smtp_url, tls: 'off', from: FROM, to: TO }),
    received: () => [],
    connections,
  };
}

const HEADERS = [
  'auto-submitted',
  'content-transfer-encoding',
  'content-type',
  'date',
  'from',
  'message-id',
  'mime-version',
  'subject',
  'to',
  'x-auto-response-suppress',
];

function expectHarmless(message: string): void {
  const { headers, subject, text, recipients } = JSON.parse(message);
  expect(recipients).toEqual(TO);
  expect(headers.map(([name]: [string]) => name).sort()).toEqual(HEADERS);
  for (const [, values] of headers) expect(values).toHaveLength(1);
  expect(subject).not.toContain('\n');
  expectEscaped(subject);
  expect(subject.length).toBeLessThanOrEqual(220);
  expect(text.length).toBeLessThanOrEqual(20_000);
  expectEscaped(text);
}

describeChannel('e-mail', {
  working: () => rigOf(),
  failing: () => rigOf({ refuseData: 554 }),
  hanging: async () => {
    const { url, sockets } = await serveRaw(() => undefined);
    return await rigAt(url, () => sockets.open.size);
  },
  absent: async () => await rigAt(await deadAddress(), () => 0),
  secrets: [LOGIN.password, encodeURIComponent(LOGIN.password), ...TO, 'private.example'],
  messagesOfThree: 1,
  expectHarmless,
});

it('has the title as its subject only, and a link', async () => {
  const { receiver, send } = await rig();
  await send(failedEvent({ submissionId: 's-1', error: 'größer > 3 & "so"' }));
  const [mail] = receiver.mails;
  expect(mail?.subject).toBe('[dawatch] Submission s-1 failed');
  expect(mail?.text).toMatch(/^Submission: s-1\n/);
  expect(mail?.text).not.toContain('Submission s-1 failed');
  expect(mail?.text).toContain('Error: größer > 3 & "so"\n');
  expect(mail?.text.trimEnd()).toMatch(/\n\nhttps:\/\/w\.example\/#\/submissions\/s-1$/);
  expect(mail?.headers.get('auto-submitted')).toEqual(['auto-generated']);
});

it('reports the reply of the mail server', async () => {
  const { send } = await rig();
  expect(await send(failedEvent())).toEqual({
    kind: 'delivered',
    httpStatus: null,
    response: expect.stringMatching(/^250 \S/),
  });
});

it('no line break in an event reaches a header', async () => {
  const { receiver, send } = await rig();
  const text = HOSTILE_TEXTS.find((each) => each.includes('Bcc:')) ?? '';
  await send({ ...upstreamEvent('upstream.down'), upstream: text });
  const [mail] = receiver.mails;
  expect(mail?.subject).toContain(' ↵ Bcc: everybody@evil.example');
  expect(mail?.headers.has('bcc')).toBe(false);
  expect(mail?.recipients).toEqual(TO);
});

it('a refused recipient neither prevents delivery to the others nor causes duplicates', async () => {
  const { receiver, send } = await rig({
    refuse: (address) => (address === TO[1] ? 550 : undefined),
  });
  const result = await send(failedEvent());
  expect(result).toMatchObject({
    kind: 'delivered',
    warning: '1 of 3 recipients refused (550)',
  });
  expect(JSON.stringify(result)).not.toContain('private.example');
  expect(receiver.mails.map(({ recipients }) => recipients)).toEqual([[TO[0], TO[2]]]);
});

it('thousands of events wait for a recipient that is refused for now, without duplicates', async () => {
  const { receiver, send } = await rig({
    refuse: (address) => (address === TO[1] && receiver.mails.length === 0 ? 450 : undefined),
  });
  const events = Array.from({ length: 5_000 }, (_, index) => ({
    ...failedEvent(),
    id: `e${index}`,
  }));
  await send(...events);
  await send(...events.slice(0, 100));
  expect(receiver.mails.map(({ recipients }) => recipients)).toEqual([[TO[0], TO[2]], [TO[1]]]);
});

it.each([
  ['451', 'every recipient', { refuse: () => 451 }, { slowDown: { retryAfterMs: null } }],
  ['550', 'every recipient', { refuse: () => 550 }, { refused: true }],
  ['452', 'the mail', { refuseData: 452 }, { slowDown: { retryAfterMs: null } }],
  ['554', 'the mail', { refuseData: 554 }, { refused: true }],
])(
  'reports %s for %s: 4xx requests a lower rate, and 5xx refuses this mail only',
  async (code, _what, options, requestsLowerRate) => {
    const { send } = await rig(options);
    const result = await send(failedEvent());
    const failure = {
      kind: 'failed',
      httpStatus: null,
      response: null,
      error: expect.stringContaining(code),
    };
    expect(result).toEqual({ ...failure, ...requestsLowerRate });
  },
);

it('reports a refused login without the credentials', async () => {
  const receiver = await openSmtpReceiver({ login: { ...LOGIN, password: 'another' } });
  const smtp_url = receiver.url.replace('another', 'a-wrong-password');
  const channel = await createEmailChannel({ smtp_url, tls: 'off', from: FROM, to: TO });
  onTestFinished(() => channel.close());
  const result = await channel.send([outgoing(failedEvent())], new AbortController().signal);
  expect(result).toMatchObject({ kind: 'failed', error: expect.stringContaining('535') });
  expect(JSON.stringify(result)).not.toMatch(/watcher|a-wrong-password/);
});

it.each([
  [
    'closes the session',
    '220 x\r\n',
    'the mail could not be sent: the connection was closed before a response',
  ],
  ['does not speak SMTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'the response is not SMTP'],
  [
    'sends a line of more than a mebibyte',
    `220 ${'x'.repeat(2 ** 21)}`,
    'the response is not SMTP',
  ],
])('a server that %s is named as the cause', async (_, greeting, error) => {
  const { url } = await serveRaw((socket) => {
    socket.once('data', () => socket.destroy());
    socket.write(greeting);
  });
  const { channel } = await rigAt(url, () => 0);
  onTestFinished(() => channel.close());
  const sent = await channel.send([outgoing(failedEvent())], new AbortController().signal);
  expect(sent).toMatchObject({ kind: 'failed', error });
});

describe('with a private authority,', () => {
  /** A server with a certificate of the authority. `trust`: as NODE_EXTRA_CA_CERTS does. */
  function privateServer(smtps: boolean) {
    const authority = createAuthority();
    const { cert, key } = authority.issue('mail');
    const tls = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8'), smtps };
    const trust = () => {
      const before = getCACertificates('default');
      setDefaultCACertificates([...before, readFileSync(authority.ca, 'utf8')]);
      onTestFinished(() => setDefaultCACertificates(before));
    };
    return { tls, trust };
  }

  it.each([false, true])(
    'mail and login go over TLS, and doctor confirms it (smtps:// %s)',
    async (smtps) => {
      const { tls, trust } = privateServer(smtps);
      trust();
      const { result, check, receiver } = await sentOver({}, { tls });
      expect(result).toMatchObject({ kind: 'delivered' });
      expect(check).toBeUndefined();
      expect(receiver.mails).toMatchObject([{ secure: true }]);
      expect(receiver.logins).toEqual([{ secure: true }, { secure: true }]);
    },
  );

  it.each([false, true])(
    'a certificate that is not trusted is named as the cause (smtps:// %s)',
    async (smtps) => {
      const { result, check, receiver } = await sentOver({}, { tls: privateServer(smtps).tls });
      const error = expect.stringMatching(/^the mail could not be sent: TLS failed \(UNABLE_TO_/);
      expect(result).toMatchObject({ kind: 'failed', error });
      expect(check).toEqual({ error, answered: true });
      expect(receiver.logins).toEqual([]);
    },
  );
});

it('a login is not sent in clear to a server without STARTTLS, unless a setting allows it', async () => {
  const refused = await sentOver({});
  const error = 'the mail server offers no TLS (500 to STARTTLS), which the setting tls requires';
  expect(refused.result).toEqual({ kind: 'failed', httpStatus: null, response: null, error });
  expect(refused.check).toEqual({ error, answered: true });
  expect(refused.receiver.logins).toEqual([]);
  for (const policy of ['opportunistic', 'off'] as const) {
    const { result, check, receiver } = await sentOver({ tls: policy });
    expect([result.kind, check]).toEqual(['delivered', undefined]);
    expect(receiver.mails).toMatchObject([{ secure: false }]);
  }
});

it.each(['opportunistic', 'require'] as const)(
  'a server that offers TLS and refuses it, with %s, gets the mail without TLS or is named',
  async (tls) => {
    const { url } = await serveRaw((socket) => {
      const reply = (text: string) => void socket.write(`${text}\r\n`);
      let isMail = false;
      createInterface(socket).on('line', (line) => {
        const wasMail = isMail;
        isMail = isMail ? line !== '.' : line === 'DATA';
        if (isMail && !wasMail) reply('354 go on');
        else if (line.startsWith('EHLO')) reply('250-x\r\n250 STARTTLS');
        else if (line === 'STARTTLS') reply('454 TLS not available');
        else if (!isMail) reply(wasMail ? '250 taken' : '250 ok');
      });
      reply('220 x');
    });
    const smtp_url = url.replace('http:', 'smtp:');
    const channel = await createEmailChannel({ smtp_url, tls, from: FROM, to: TO });
    onTestFinished(() => channel.close());
    const result = await channel.send([outgoing(failedEvent())], new AbortController().signal);
    expect(result).toMatchObject(
      tls === 'opportunistic'
        ? { kind: 'delivered', response: '250 taken' }
        : {
            kind: 'failed',
            error: expect.stringMatching(/^the mail server offers TLS and refuses it \(454/),
          },
    );
  },
);

it('a name with a comma in `from` is one sender', async () => {
  const { receiver } = await sentOver({ from: 'Watch, Inc. <a@b.example>', tls: 'off' });
  expect(receiver.mails[0]?.headers.get('from')).toEqual(['"Watch, Inc." <a@b.example>']);
});

it('a repeated mail has the Message-ID of the first one, and other mails have others', async () => {
  const { receiver, send } = await rig();
  const event = alertEvent('alert.raised');
  for (const events of [[event], [event], [event, alertEvent('alert.raised')]])
    await send(...events);
  const ids = receiver.mails.flatMap(({ headers }) => headers.get('message-id') ?? []);
  expect(ids[1]).toBe(ids[0]);
  expect(ids[2]).not.toBe(ids[0]);
});
