import { describe, expect, it, onTestFinished } from 'vitest';
import { verifyWebhook } from '../../src/client/webhook.ts';
import {
  createWebhookChannel,
  makeSecret,
  type WebhookEndpoint,
} from '../../src/notifications/channels/webhook.ts';
import { toEventJson } from '../../src/notifications/event-body.ts';
import { createAddressGuard } from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { openReceiver, type ScriptedResponse } from '../support/servers/receiver.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const NOW = Date.parse('2026-01-02T03:04:05.678Z');
const SECRET = makeSecret();
const EVENT = {
  seq: 7,
  id: 'evt_7',
  at: NOW - 60_000,
  type: 'webhook.test',
  webhookId: 'wh_1',
} as const;
const JSON_BODY = toEventJson(EVENT);

type Settings = Partial<WebhookEndpoint> & {
  callbackUrl?: string | null;
  allow?: string[];
  refusalOf?: (url: string) => string | undefined;
};

/** A channel with its own connections, closed when the test ends. */
function channelTo(url: string | null, settings: Settings = {}) {
  const { callbackUrl = null, secrets = [SECRET], allow, refusalOf = () => undefined } = settings;
  const guard = createAddressGuard({ allow: allow ?? ['127.0.0.1/32'] });
  const http = createHttpPost({ guard, version: '1.2.3', clock: new HeldClock(1_000) });
  onTestFinished(() => http.close());
  const endpoint = { url, secrets };
  const open = () => createWebhookChannel({ post: http.post, endpoint, refusalOf, now: () => NOW });
  const send = () =>
    open().send([{ event: EVENT, json: JSON_BODY, callbackUrl }], new AbortController().signal);
  return { channel: open(), send, endpoint };
}

const failed = (error: string | RegExp) => ({
  kind: 'failed',
  httpStatus: null,
  error: expect.stringMatching(error),
  response: null,
});

describe('an event', () => {
  it('is sent as its JSON, signed at the time of the attempt', async () => {
    const receiver = await openReceiver({ status: 202, body: 'thanks' });
    const { send, channel } = channelTo(`${receiver.url}/hooks?token=1`);
    expect(await send()).toEqual({ kind: 'delivered', httpStatus: 202, response: 'thanks' });
    expect(channel.maxBatch).toBe(1);
    const [request] = receiver.requests;
    expect(request).toMatchObject({ method: 'POST', path: '/hooks?token=1', body: JSON_BODY });
    expect(request?.headers).toMatchObject({
      'user-agent': 'dawatch/1.2.3',
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      'webhook-id': 'evt_7',
      'webhook-timestamp': String(Math.floor(NOW / 1_000)),
    });
    const { headers = {}, body = '' } = request ?? {};
    expect(verifyWebhook({ payload: body, headers, secret: SECRET, now: NOW })).toMatchObject({
      id: 'evt_7',
    });
  });

  it('is not sent to an address that is no longer allowed, even if it was allowed when it was stored', async () => {
    const receiver = await openReceiver();
    const result = await channelTo(receiver.url, {
      refusalOf: () => 'only https:// addresses',
    }).send();
    expect(result).toEqual(failed('only https'));
    expect(receiver.requests).toEqual([]);
  });

  it('is signed with the current secrets, and not sent without one that can sign', async () => {
    const receiver = await openReceiver();
    const { send, endpoint } = channelTo(receiver.url);
    await send();
    endpoint.secrets = [makeSecret(), makeSecret()];
    await send();
    expect(
      receiver.requests.map(({ headers }) =>
        String(headers['webhook-signature']).replace(/,\S+/g, ''),
      ),
    ).toEqual(['v1', 'v1 v1']);
    for (const secrets of [[], ['whsec_short']]) {
      endpoint.secrets = secrets;
      expect(await send()).toEqual(failed('no valid secret'));
    }
    expect(receiver.requests).toHaveLength(2);
  });
});

describe('a response', () => {
  it('that quotes the secret of its own attempt has it redacted, also after a rotation', async () => {
    const [first, second] = [makeSecret(), makeSecret()];
    const receiver = await openReceiver([{ body: `not ${first}` }, { body: `not ${second}` }]);
    const { send, endpoint } = channelTo(receiver.url, { secrets: [first] });
    expect((await send()).response).toBe('not [redacted]');
    endpoint.secrets = [second, first];
    expect((await send()).response).toBe('not [redacted]');
  });

  const date = new Date(NOW).toUTCString();
  it.each<[string, ScriptedResponse, object]>([
    ['500', { status: 500, body: 'oops' }, { error: 'responded with 500', response: 'oops' }],
    ['404', { status: 404 }, { error: 'responded with 404', response: null, refused: true }],
    ['302', { status: 302 }, { refused: true }],
    ['408', { status: 408 }, { error: 'responded with 408' }],
    ['410: it is gone', { status: 410 }, { gone: true, error: 'responded with 410' }],
    [
      '429 with seconds',
      { status: 429, headers: { 'retry-after': '90' } },
      { slowDown: { retryAfterMs: 90_000 } },
    ],
    [
      '429 with a date',
      { status: 429, headers: { date, 'retry-after': new Date(NOW + 120_000).toUTCString() } },
      { slowDown: { retryAfterMs: 120_000 } },
    ],
    ['503 without a time', { status: 503 }, { slowDown: { retryAfterMs: null } }],
    [
      '504',
      { status: 504, headers: { 'retry-after': '7' } },
      { slowDown: { retryAfterMs: 7_000 } },
    ],
  ])('of %s is classified accordingly', async (text, script, expected) => {
    const receiver = await openReceiver(script);
    const result = await channelTo(receiver.url).send();
    expect(result).toMatchObject({
      kind: 'failed',
      httpStatus: Number(text.slice(0, 3)),
      ...expected,
    });
    for (const name of ['gone', 'slowDown', 'refused'])
      expect(name in result, name).toBe(name in expected);
  });
});
