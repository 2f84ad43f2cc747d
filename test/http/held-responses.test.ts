import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { addLimits } from '../../src/access/authentication.ts';
import { boundRequests } from '../../src/http/connections.ts';
import { registerProblems } from '../../src/http/problems.ts';
import { awaitDurability } from '../../src/http/responses.ts';

/** A server whose disk hangs from the first response until `resume`. */
async function openHanging({ isRefused = false, deadlineMs = 60_000 }) {
  const held = Promise.withResolvers<void>();
  const hangs = Promise.withResolvers<void>();
  let isHanging = false;
  let handled = 0;
  const app = fastify();
  onTestFinished(() => app.close());
  app.decorateRequest('clientAddress', '');
  registerProblems(app, { notFoundHint: () => '' });
  const limits = {
    requests_per_minute: 100,
    failed_authentications_per_minute: 1,
  } as Parameters<typeof addLimits>[1]['limits'];
  const authenticator = {
    identify: () => ({ kind: isRefused ? ('unknown' as const) : ('absent' as const) }),
    currentCaller: () => undefined,
  };
  app.addHook('onRequest', boundRequests(deadlineMs));
  const onRefused = () => undefined;
  app.addHook('onRequest', await addLimits(app, { limits, authenticator, onRefused }));
  awaitDurability(app, {
    whenDurable() {
      if (!isHanging) return undefined;
      hangs.resolve();
      return held.promise;
    },
  });
  app.get('/', async () => {
    handled += 1;
    return 'handled';
  });
  if (isRefused) await app.inject('/');
  isHanging = true;
  handled = 0;
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect(Number(new URL(address).port), '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await hangs.promise;
  return {
    app,
    socket,
    handled: () => handled,
    async resume() {
      held.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

it('a refused request reaches no handler, although its client disconnects while the disk hangs', async () => {
  const { app, socket, handled, resume } = await openHanging({ isRefused: true });
  const connections = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  socket.destroy();
  await expect.poll(connections).toBe(0);
  await resume();
  expect(handled()).toBe(0);
});

it('a request gets 503 at its deadline while the disk hangs, and nothing when the disk continues', async () => {
  const { socket, handled, resume } = await openHanging({ deadlineMs: 30 });
  const response = text(socket);
  await once(socket, 'end');
  expect(await response).toMatch(/^HTTP\/1\.1 503 /);
  await resume();
  expect(handled()).toBe(1);
});
