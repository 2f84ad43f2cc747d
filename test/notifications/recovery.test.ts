import { expect, it, onTestFinished } from 'vitest';
import { createWebhookChannel, makeSecret } from '../../src/notifications/channels/webhook.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import {
  DAY_MS,
  delivered,
  failed,
  numbered,
  openDispatcher,
  openRealDispatcher,
} from '../support/virtual-time/virtual-dispatcher.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

type Row = { state: string; attempts: number; deadReason: string | null };

/** All deliveries. The pages of a list end early on a busy machine. */
function rowsOf(world: ReturnType<typeof openDispatcher>): Row[] {
  const sql = 'SELECT state, attempts, dead_reason AS deadReason FROM deliveries ORDER BY id';
  return rawConnection(world.ledger.file).prepare(sql).all() as Row[];
}

/** Real requests to a real receiver, in virtual time. */
async function openWorld() {
  const receiver = await openReceiver(({ response }) => {
    response.writeHead(state.isUp ? 200 : 500).end();
  });
  const state = { isUp: false };
  const http = createHttpPost({ guard: undefined, version: 'test' });
  onTestFinished(() => http.close());
  const channel = createWebhookChannel({
    post: http.post,
    endpoint: { url: receiver.url, secrets: [makeSecret()] },
    refusalOf: () => undefined,
    now: Date.now,
  });
  return { world: openRealDispatcher(channel), receiver, state };
}

it.each(['webhook', 'callback'])(
  'the first success of a %s after hours brings everything that waits within seconds, oldest first',
  async (kind) => {
    const { world, receiver, state } = await openWorld();
    const add = (id: string) =>
      world.finalize(id, kind === 'callback' ? { callbackUrl: receiver.url } : {});
    world.ledger.webhooks.ensureCallbacks(() => 'whsec_x', 0);
    if (kind === 'webhook') world.webhook(receiver.url);
    const ids = Array.from({ length: 20 }, (_, index) => `s${index}`);
    for (const id of ids) {
      add(id);
      await world.clock.advance(10 * MINUTE);
    }
    const before = world.sent.length;
    state.isUp = true;
    add('new');
    await world.clock.advance(5 * SECOND);
    const sent = world.sent.slice(before).flatMap(({ events }) => events);
    expect(sent[0]).toBe('new');
    expect(sent.slice(1)).toEqual(ids);
    expect(rowsOf(world).every(({ state }) => state === 'delivered')).toBe(true);
  },
);

it('a new address gets what waits for the old one at once', async () => {
  const world = openDispatcher({
    receive: () => (world.ledger.webhooks.url(id)?.includes('old') ? failed() : delivered),
  });
  const id = world.webhook('https://old.example');
  world.finalizeAll(numbered(20));
  await world.clock.advance(3 * HOUR);
  world.ledger.webhooks.update(id, { url: 'https://new.example' }, world.clock.now());
  await world.clock.advance(5 * SECOND);
  expect(rowsOf(world).every(({ state }) => state === 'delivered')).toBe(true);
});

it.each([
  ['refuses', { httpStatus: 400, refused: true }],
  ['fails at', { httpStatus: 500 }],
])(
  'an event that a receiver %s has ten attempts over hours, although others succeed',
  async (_name, response) => {
    const world = openDispatcher({
      receive: (_destination, [outgoing]) =>
        outgoing?.json.includes('unwanted') ? failed(response) : delivered,
    });
    world.webhook('https://a.example');
    world.finalizeAll(numbered(10, 'unwanted'));
    for (let minute = 0; minute < 90; minute++) {
      await world.clock.advance(MINUTE);
      world.finalize(`good${minute}`);
    }
    expect(rowsOf(world).filter(({ state }) => state === 'dead')).toEqual([]);
    await world.clock.advance(4 * DAY_MS);
    const dead = rowsOf(world).filter(({ state }) => state === 'dead');
    expect(new Set(dead.map((one) => `${one.deadReason} ${one.attempts}`))).toEqual(
      new Set(['attempts_used_up 10']),
    );
    expect(dead).toHaveLength(10);
  },
);

it('events that a receiver refuses do not hold up the others, even without new events', async () => {
  const world = openDispatcher({
    receive: (_destination, [outgoing]) => {
      if (!isUp) return failed();
      return outgoing?.json.includes('unwanted') ? failed({ refused: true }) : delivered;
    },
  });
  let isUp = false;
  world.webhook('https://a.example');
  world.finalizeAll(numbered(4, 'unwanted'));
  world.finalizeAll(numbered(20, 'good'));
  await world.clock.advance(3 * HOUR);
  isUp = true;
  world.finalize('new');
  await world.clock.advance(MINUTE);
  expect(rowsOf(world).filter(({ state }) => state === 'delivered')).toHaveLength(21);
});
