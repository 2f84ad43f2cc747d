import { type FastifyInstance, type FastifyReply, fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { awaitDurability } from '../../src/http/responses.ts';

const TURNS = 20;

/** A server whose disk syncs when a test says so. */
function openServer() {
  const app: FastifyInstance = fastify();
  onTestFinished(() => app.close());
  const disk = openDisk();
  awaitDurability(app, disk);
  app.post('/write', async () => 'done');
  app.get('/read', async () => 'read');
  app.get('/missing', async (_request, reply: FastifyReply) => reply.code(404).send('nothing'));
  app.get('/failed', async (_request, reply: FastifyReply) => reply.code(503).send('busy'));
  app.get('/probe', { config: { isDurable: true } }, async () => 'alive');
  return { app, disk };
}

function openDisk() {
  let pending: PromiseWithResolvers<void> | undefined;
  return {
    whenDurable: () => pending?.promise,
    commit: () => {
      pending = Promise.withResolvers();
      pending.promise.catch(() => undefined);
    },
    synced: () => pending?.resolve(),
    failed: (error: Error) => pending?.reject(error),
  };
}

/** Returns the status of a response; undefined while it is held. */
function send(app: FastifyInstance, method: 'GET' | 'POST', url: string) {
  const response = { status: undefined as number | undefined };
  void app.inject({ method, url }).then(({ statusCode }) => {
    response.status = statusCode;
  });
  return response;
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}

it.each([
  ['POST', '/write', 200],
  ['GET', '/read', 200],
  ['GET', '/missing', 404],
] as const)(
  '%s %s is held until what was committed is on the disk',
  async (method, url, status) => {
    const { app, disk } = openServer();
    disk.commit();
    const response = send(app, method, url);
    await turns();
    expect(response.status).toBeUndefined();
    disk.synced();
    await turns();
    expect(response.status).toBe(status);
  },
);

it.each([
  ['/probe', 200],
  ['/failed', 503],
] as const)('%s does not wait for the disk', async (url, status) => {
  const { app, disk } = openServer();
  disk.commit();
  const response = send(app, 'GET', url);
  await turns();
  expect(response.status).toBe(status);
});

it('nothing is held when everything is on the disk', async () => {
  const { app } = openServer();
  const response = send(app, 'POST', '/write');
  await turns();
  expect(response.status).toBe(200);
});

it('a failed sync is an error, not an acknowledgement', async () => {
  const { app, disk } = openServer();
  disk.commit();
  const response = send(app, 'POST', '/write');
  disk.failed(new Error('the disk failed'));
  await turns();
  expect(response.status).toBe(500);
});
