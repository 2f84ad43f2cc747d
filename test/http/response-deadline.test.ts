import { connect } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { boundRequests } from '../../src/http/connections.ts';
import { call, problemOf } from '../support/app/http-calls.ts';

const DEADLINE_MS = 50;

/** A server with faulty handlers. */
async function faulty(register: (app: FastifyInstance) => void) {
  const lines: string[] = [];
  const app = fastify({
    logger: { level: 'error', stream: { write: (line) => lines.push(line) } },
  });
  onTestFinished(() => app.close());
  app.addHook('onRequest', boundRequests(DEADLINE_MS));
  register(app);
  return { url: await app.listen({ port: 0, host: '127.0.0.1' }), lines };
}

it('responds 503 if the handler never does, closes the connection, and logs the route and the request id', async () => {
  const { url, lines } = await faulty((app) => app.get('/never/:id', () => undefined));
  const response = await call(url, '/never/1');
  expect(problemOf(response)).toMatchObject({ status: 503, detail: 'the request took too long' });
  expect(response.headers.connection).toBe('close');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      msg: 'http.no_response',
      method: 'GET',
      route: '/never/:id',
      request_id: problemOf(response).instance,
    },
  ]);
});

it('responds if a hook never continues, and without a route', async () => {
  const { url } = await faulty((app) => {
    app.get('/stuck', { preHandler: () => undefined }, async () => 'never');
    app.setNotFoundHandler(() => undefined);
  });
  for (const path of ['/stuck', '/nowhere']) expect((await call(url, path)).status).toBe(503);
});

it('ignores a late response of the handler', async () => {
  const released = Promise.withResolvers<void>();
  const { url, lines } = await faulty((app) => {
    app.get('/late', async () => {
      await released.promise;
      return 'late';
    });
    app.get('/never', () => undefined);
  });
  expect((await call(url, '/late')).status).toBe(503);
  released.resolve();
  // By its end, the late response was sent.
  expect((await call(url, '/never')).status).toBe(503);
  expect(lines.every((line) => line.includes('http.no_response'))).toBe(true);
});

it('ignores requests held open, responses that have begun and disconnected clients', async () => {
  const released = Promise.withResolvers<void>();
  let open = 0;
  const { url, lines } = await faulty((app) => {
    app.get('/open', { config: { staysOpen: true } }, async () => {
      open += 1;
      await released.promise;
      return 'open';
    });
    app.get('/begun', async (_request, reply) => {
      open += 1;
      reply.raw.write('begun ');
      await released.promise;
      reply.hijack().raw.end('and ended');
    });
    app.get('/never', () => undefined);
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET /never HTTP/1.1\r\nhost: x\r\n\r\n', () => socket.destroy());
  const calls = [call(url, '/open'), call(url, '/begun')];
  await expect.poll(() => [open, socket.destroyed]).toEqual([2, true]);
  // Their deadlines were earlier than the one of this request.
  expect((await call(url, '/never')).status).toBe(503);
  released.resolve();
  const responses = await Promise.all(calls);
  expect(responses.map(({ text }) => text)).toEqual(['open', 'begun and ended']);
  expect(lines).toHaveLength(1);
});
