import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { addLimits, type CredentialLock } from '../../src/access/credential-lock.ts';
import { boundRequests } from '../../src/http/connections.ts';
import { awaitDurability } from '../../src/http/durable-responses.ts';
import { registerProblems } from '../../src/http/problems.ts';

/** A server whose disk hangs from the first response until `resume`. */
async function openHanging({ isLocked = false, deadlineMs = 60_000 }) {
  const held = Promise.withResolvers<void>();
  const hangs = Promise.withResolvers<void>();
  let handled = 0;
  const app = fastify();
  onTestFinished(() => app.close());
  app.decorateRequest('clientAddress', '');
  registerProblems(app, { notFoundHint: () => '' });
  const lock = {
    identify: () => (isLocked ? { kind: 'locked', retryAfterMs: 5_000 } : { kind: 'none' }),
    recordVerdict: () => undefined,
  } as unknown as CredentialLock;
  const limits = {
    requests_per_minute: 100,
    failed_authentications_per_minute: 20,
  } as Parameters<typeof addLimits>[1]['limits'];
  app.addHook('onRequest', boundRequests(app, deadlineMs));
  app.addHook('onRequest', await addLimits(app, { limits, lock }));
  awaitDurability(app, {
    whenDurable() {
      hangs.resolve();
      return held.promise;
    },
  });
  app.get('/', async () => {
    handled += 1;
    return 'handled';
  });
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
  const { app, socket, handled, resume } = await openHanging({ isLocked: true });
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
