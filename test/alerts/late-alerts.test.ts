import { expect, it, onTestFinished } from 'vitest';
import type { Channel } from '../../src/notifications/channels/channel.ts';
import { createSlackChannel } from '../../src/notifications/channels/slack.ts';
import { createWebhookChannel, makeSecret } from '../../src/notifications/channels/webhook.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { watchAlerts, withAlerts } from '../support/ledger/alerts-ledger.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { openRealDispatcher } from '../support/virtual-time/virtual-dispatcher.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** A chat, or a webhook, of real requests in virtual time. It gets the events of alerts. */
async function openWorld(kind: 'chat' | 'webhook', { checkMs = 5 * SECOND } = {}) {
  const state = { isUp: true, refuses: '' };
  const arrived: string[] = [];
  const receiver = await openReceiver(({ response }) => {
    const body = receiver.requests.at(-1)?.body ?? '';
    const text = titleOf(body);
    const isRefused = state.refuses !== '' && text.startsWith(state.refuses);
    if (state.isUp && !isRefused) arrived.push(text);
    response.writeHead(isRefused ? 400 : state.isUp ? 200 : 500).end();
  });
  const http = createHttpPost({ guard: undefined, version: 'test' });
  onTestFinished(() => http.close());
  const endpoint = { url: receiver.url, secrets: [makeSecret()] };
  const channel: Channel =
    kind === 'chat'
      ? createSlackChannel({ url: receiver.url, post: http.post })
      : createWebhookChannel({
          post: http.post,
          endpoint,
          refusalOf: () => undefined,
          now: Date.now,
        });
  const world = openRealDispatcher(channel);
  const { clock } = world;
  const ledger = withAlerts(world.ledger);
  const subscriptions = [{ types: ['alert.*', 'upstream.*'], metadata: null }];
  if (kind === 'webhook') world.webhook(receiver.url, { types: ['alert.*'] });
  else ledger.routes.setChannels([{ name: 'ops', subscriptions, gatherMs: 5 * SECOND }]);
  // These tests are about other alerts than those about the receiver itself.
  const mute = { subject: null, until: clock.now() + 30 * 24 * HOUR, reason: '' };
  for (const rule of ['webhook_failing', 'channel_failing'] as const)
    ledger.alerts.addMute({ rule, ...mute }, 'on call', clock.now());
  const onFailed = (error: unknown) => expect.fail(String(error));
  watchAlerts({ store: ledger.alerts, clock, checkMs, onFailed });
  return {
    ...world,
    state,
    arrived,
    /** The texts of all messages. */
    bodies: () => receiver.requests.map(({ body }) => body).join('\n'),
  };
}

/** The type of an event, or the title of a message without its sign. */
function titleOf(body: string): string {
  const { type, text } = JSON.parse(body) as { type?: string; text?: string };
  return type ?? text?.split('\n')[0]?.replace(/^\S+ /u, '') ?? '';
}

const DOWN = 'The upstream default is not responding (HTTP 503); no submission is waiting for it';

it('after an outage of 25 s of the chat and the upstream, the alert arrives within seconds, before its end, and says that it is over', async () => {
  const { clock, state, turn, arrived, bodies } = await openWorld('chat');
  state.isUp = false;
  turn('down');
  await clock.advance(25 * SECOND);
  state.isUp = true;
  turn('up');
  await clock.advance(20 * SECOND);
  expect(arrived.filter((text) => !text.startsWith('Upstream'))).toEqual([
    `Alert, resolved since: ${DOWN}`,
    'Resolved: The upstream default is responding again',
  ]);
  expect(arrived.filter((text) => text.startsWith('Upstream')).sort()).toEqual([
    'Upstream default is up again',
    'Upstream default was down',
  ]);
  expect(bodies()).toContain(
    '*Was firing* `2025-10-09T08:53:20.000Z to 2025-10-09T08:53:50.000Z, for 30 s`',
  );
});

it.each([
  ['webhook', 'alert.raised', ['alert.raised', 'alert.resolved']],
  [
    'chat',
    'Alert',
    [`Alert, resolved since: ${DOWN}`, 'Resolved: The upstream default is responding again'],
  ],
] as const)(
  'a %s that refuses the beginning of an alert gets its end after it, never alone',
  async (kind, refuses, expected) => {
    const world = await openWorld(kind, { checkMs: MINUTE });
    const { clock, state, turn, arrived, deliveries } = world;
    state.refuses = refuses;
    turn('down');
    await clock.advance(5 * HOUR);
    turn('up');
    await clock.advance(MINUTE);
    const ofAlert = () => arrived.filter((text) => !text.startsWith('Upstream'));
    expect(ofAlert()).toEqual([]);
    state.refuses = '';
    await clock.advance(13 * HOUR);
    expect(ofAlert()).toEqual(expected);
    expect(deliveries({ state: 'waiting' })).toEqual([]);
  },
);

it('each message keeps its order across a kill', async () => {
  const world = await openWorld('chat');
  const { clock, state, turn, arrived } = world;
  state.isUp = false;
  turn('down');
  await clock.advance(25 * SECOND);
  turn('up');
  await clock.advance(6 * SECOND);
  await world.dispatcher.stop(0);
  state.isUp = true;
  world.restart();
  await clock.advance(10 * SECOND);
  expect(arrived.filter((text) => !text.startsWith('Upstream'))).toEqual([
    `Alert, resolved since: ${DOWN}`,
    'Resolved: The upstream default is responding again',
  ]);
});
