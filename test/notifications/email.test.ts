import { expect, it, onTestFinished, vi } from 'vitest';
import { createEmailChannel } from '../../src/notifications/channels/email.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';
import { deadAddress, serveRaw } from '../support/servers/upstream-server.ts';
import { describeChannel, expectEscaped, type Rig } from './channel-conformance.ts';
import { failedEvent, HOSTILE_TEXTS, outgoing, upstreamEvent } from './sample-events.ts';

const LOGIN = { user: 'watcher', password: 'S3cret:p@ss/word' };
const FROM = 'dawatch <dawatch@example.org>';
const TO = ['one@private.example', 'two@private.example', 'three@private.example'];

type ReceiverOptions = Parameters<typeof openSmtpReceiver>[0];

async function rig(options: ReceiverOptions = {}, to = TO) {
  const receiver = await openSmtpReceiver({ login: LOGIN, ...options });
  const channel = createEmailChannel({ smtpUrl: receiver.url, from: FROM, to });
  onTestFinished(() => channel.close());
  const send = (...events: Parameters<typeof outgoing>[0][]) =>
    channel.send(events.map(outgoing), AbortSignal.timeout(10_000));
  return { channel, receiver, send };
}

async function rigOf(options?: ReceiverOptions): Promise<Rig> {
  const { channel, receiver } = await rig(options);
  const received = () =>
    receiver.mails.map((mail) => JSON.stringify({ ...mail, headers: [...mail.headers] }));
  return { channel, received, connections: receiver.connections.open };
}

function rigAt(url: string, connections: () => number): Rig {
  const smtpUrl = url
    .replace('http:', `smtp:`)
    .replace('//', `//${LOGIN.user}:${encodeURIComponent(LOGIN.password)}@`);
  return {
    channel: createEmailChannel({ smtpUrl, from: FROM, to: TO }),
    received: () => [],
    connections,
  };
}

const HEADERS = [
  'auto-submitted',
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
  const { headers, subject, text, html, recipients } = JSON.parse(message);
  expect(recipients).toEqual(TO);
  expect(headers.map(([name]: [string]) => name).sort()).toEqual(HEADERS);
  for (const [, values] of headers) expect(values).toHaveLength(1);
  expect(subject).not.toContain('\n');
  expectEscaped(subject);
  expect(subject.length).toBeLessThanOrEqual(220);
  expect(text.length).toBeLessThanOrEqual(20_000);
  expectEscaped(text);
  // Only elements of the template, and none that could load or run something.
  const tags = [...html.matchAll(/<\/?!?([a-z0-9]*)/gi)].map(([, name]) => name);
  expect(new Set(tags)).toEqual(new Set(['doctype', 'html', 'body', 'h2', 'table', 'tr', 'td']));
}

describeChannel('e-mail', {
  working: () => rigOf(),
  failing: () => rigOf({ refuseData: 554 }),
  hanging: async () => {
    const { url, sockets } = await serveRaw(() => undefined);
    return rigAt(url, () => sockets.open.size);
  },
  absent: async () => rigAt(await deadAddress(), () => 0),
  secrets: [LOGIN.password, encodeURIComponent(LOGIN.password), ...TO, 'private.example'],
  messagesOfThree: 1,
  expectHarmless,
});

it('has the same content in the subject, the text and the HTML', async () => {
  const { receiver, send } = await rig();
  await send(failedEvent({ submissionId: 's-1', error: 'größer > 3 & "so"' }));
  const [mail] = receiver.mails;
  expect(mail?.subject).toBe('[dawatch] Submission s-1 failed');
  expect(mail?.text).toContain('Submission s-1 failed\n\nSubmission: s-1\n');
  expect(mail?.text).toContain('Error: größer > 3 & "so"\n');
  expect(mail?.html).toContain('größer &gt; 3 &amp; &quot;so&quot;</td>');
  expect(mail?.headers.get('auto-submitted')).toEqual(['auto-generated']);
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
    response: expect.stringContaining('1 of 3 recipients refused'),
  });
  expect(JSON.stringify(result)).not.toContain('private.example');
  expect(receiver.mails.map(({ recipients }) => recipients)).toEqual([[TO[0], TO[2]]]);
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
  const smtpUrl = receiver.url.replace('another', 'a-wrong-password');
  const channel = createEmailChannel({ smtpUrl, from: FROM, to: TO });
  onTestFinished(() => channel.close());
  const result = await channel.send([outgoing(failedEvent())], AbortSignal.timeout(10_000));
  expect(result).toMatchObject({ kind: 'failed', error: expect.stringContaining('535') });
  expect(JSON.stringify(result)).not.toMatch(/watcher|a-wrong-password/);
});

it('opens another connection after one that hung', async () => {
  const { url, sockets } = await serveRaw(() => undefined);
  const { channel } = rigAt(url, () => 0);
  onTestFinished(() => channel.close());
  for (const total of [1, 2]) {
    const controller = new AbortController();
    const sent = channel.send([outgoing(failedEvent())], controller.signal);
    await vi.waitFor(() => expect(sockets.total).toBe(total), 5_000);
    controller.abort();
    expect(await sent).toMatchObject({ kind: 'failed', error: 'the attempt was aborted' });
  }
  await vi.waitFor(() => expect(sockets.open.size).toBe(0), 5_000);
});
