import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { DawatchClient } from '../../../src/client/index.ts';
import { CRASH_ADMIN_TOKEN, sleep } from '../../support/processes/killable-server.ts';
import { createWebhook } from '../../support/servers/deliveries.ts';
import { watch } from '../support/probe.ts';
import { prepareWorld } from '../support/world.ts';

const ENDPOINTS = 200;
const SUBMISSIONS = 20;

test('200 webhooks of which half hang: the others receive every event meanwhile, and the hanging ones receive theirs later', async () => {
  const world = await prepareWorld('webhooks', { settings: { log: { level: 'warn' } } });
  await world.start();
  const endpoints = await openEndpoints();
  for (let number = 0; number < ENDPOINTS; number++)
    await createWebhook(world.server.url, endpoints.urlOf(number));
  const seen = watch(world.server);
  await world.track(SUBMISSIONS);
  const [good, hanging] = [endpoints.numbers(false), endpoints.numbers(true)];
  const isDone = (numbers: number[]) => {
    const events = world.receiver.bodies.size;
    return (
      events >= SUBMISSIONS && numbers.every((number) => endpoints.got(number).size === events)
    );
  };
  while (!isDone(good)) await sleep(50);
  // No client waited for those.
  expect(hanging.filter((number) => endpoints.got(number).size > 0)).toEqual([]);
  const held = endpoints.held();
  expect(held).toBeGreaterThan(0);
  endpoints.repair();
  // Deliveries that hung until their timeout must not wait for their next attempt.
  await sendAgain(world.server.url);
  while (!isDone(hanging)) await sleep(50);
  const { refused, peakMiB } = await seen.end();
  console.log(
    `${ENDPOINTS} webhooks, ${world.receiver.bodies.size} events, ${held} hung, at most ${peakMiB.toFixed(0)} MiB`,
  );
  expect(refused).toEqual([]);
  await world.expectSurvived();
});

/** Replays every delivery that was attempted and waits. */
async function sendAgain(url: string): Promise<void> {
  const { deliveries } = new DawatchClient({ url, token: CRASH_ADMIN_TOKEN });
  let cursor: string | undefined;
  do {
    const page = await deliveries.list({
      state: 'waiting',
      limit: 1_000,
      ...(cursor !== undefined && { cursor }),
    });
    for (const { id, attempts_made } of page.deliveries)
      if (attempts_made > 0) await deliveries.replay(id);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** One server with a path per webhook; every second path does not respond until it is repaired. */
async function openEndpoints() {
  const got = new Map<number, Set<string>>();
  const held = new Map<ServerResponse, () => void>();
  let isRepaired = false;
  const server = createServer(async (request, response) => {
    const number = Number(request.url?.slice(1));
    if ((await text(request).catch(() => undefined)) === undefined) return;
    const take = () => {
      got.set(number, (got.get(number) ?? new Set()).add(String(request.headers['webhook-id'])));
      response.writeHead(204).end();
    };
    if (isRepaired || !hangs(number)) take();
    else held.set(response, take);
    response.once('close', () => held.delete(response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const hangs = (number: number) => number % 2 === 1;
  return {
    urlOf: (number: number) => `http://127.0.0.1:${port}/${number}`,
    numbers: (hanging: boolean) =>
      Array.from({ length: ENDPOINTS }, (_, number) => number).filter(
        (one) => hangs(one) === hanging,
      ),
    got: (number: number) => got.get(number) ?? new Set<string>(),
    held: () => held.size,
    repair(): void {
      isRepaired = true;
      for (const take of held.values()) take();
    },
  };
}
