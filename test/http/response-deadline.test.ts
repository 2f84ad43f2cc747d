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
  const { url, lines } = await faulty((app) =>
    app.get('/late', async () => {
      await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS * 4));
      return 'late';
    }),
  );
  expect((await call(url, '/late')).status).toBe(503);
  await new Promise((resolve) => setTimeout(resolve, DEADLINE_MS * 5));
  expect((await call(url, '/late')).status).toBe(503);
  expect(lines.every((line) => line.includes('http.no_response'))).toBe(true);
});

it('ignores requests held open, responses that have begun and disconnected clients', async () => {
  const longer = () => new Promise((resolve) => setTimeout(resolve, DEADLINE_MS * 4));
  const { url, lines } = await faulty((app) => {
    app.get('/open', { config: { staysOpen: true } }, async () => longer().then(() => 'open'));
    app.get('/begun', async (_request, reply) => {
      reply.raw.write('begun ');
      await longer();
      reply.hijack().raw.end('and ended');
    });
    app.get('/never', () => undefined);
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('GET /never HTTP/1.1\r\nhost: x\r\n\r\n', () => socket.destroy());
  const responses = await Promise.all([call(url, '/open'), call(url, '/begun')]);
  expect(responses.map(({ text }) => text)).toEqual(['open', 'begun and ended']);
  await expect.poll(() => socket.destroyed).toBe(true);
  expect(lines).toEqual([]);
});
