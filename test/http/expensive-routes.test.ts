import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { rightsOfRole } from '../../src/access/scopes.ts';
import { serializeExpensiveRoutes } from '../../src/http/expensive-routes.ts';

/** Records which request was served in which iteration of the event loop. */
async function openServer() {
  const served: { name: string; turn: number }[] = [];
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const app = fastify();
  onTestFinished(() => {
    isOver = true;
    return app.close();
  });
  app.addHook('onRequest', (request, reply, done) => {
    if (request.url.endsWith('gone')) reply.raw.destroy();
    const { client } = request.query as { client?: string };
    if (client) request.caller = { id: null, ...rightsOfRole('service'), name: client };
    done();
  });
  serializeExpensiveRoutes(app);
  for (const [path, config] of Object.entries({ '/long/:name': { isExpensive: true }, '/short/:name': {} }))
    app.get(path, { config }, async (request) => {
      const { name } = request.params as { name: string };
      served.push({ name, turn });
      if (name === 'failing') throw new Error('no such page');
      return name;
    });
  await app.ready();
  const sendRequest = async (...paths: string[]) => {
    const before = served.length;
    const responses = await Promise.all(paths.map((path) => app.inject(path).catch(() => undefined)));
    return { responses: responses.map((response) => response?.payload), served: served.slice(before) };
  };
  return { sendRequest };
}

it('serves expensive requests one by one in their order, even if some fail', async () => {
  const { sendRequest: request } = await openServer();
  for (let round = 0; round < 2; round++) {
    const { responses, served } = await request('/long/a', '/long/b', '/long/failing', '/long/c');
    expect(responses).toEqual(['a', 'b', expect.stringContaining('no such page'), 'c']);
    expect(served.map(({ name }) => name)).toEqual(['a', 'b', 'failing', 'c']);
    expect(new Set(served.map(({ turn }) => turn)).size).toBe(4);
  }
});

it('serves credentials in turn', async () => {
  const { sendRequest: request } = await openServer();
  const { served } = await request('/long/a1?client=a', '/long/a2?client=a', '/long/a3?client=a', '/long/b1?client=b');
  expect(served.map(({ name }) => name)).toEqual(['a1', 'a2', 'b1', 'a3']);
});

it('does not delay other requests', async () => {
  const { sendRequest: request } = await openServer();
  const { served } = await request('/long/a', '/long/b', '/long/c', '/short/d');
  expect(served.map(({ name }) => name).indexOf('d')).toBeLessThan(2);
});

it('drops requests of disconnected clients', async () => {
  const { sendRequest: request } = await openServer();
  const { served } = await request('/long/a', '/long/gone', '/long/b');
  expect(served.map(({ name }) => name)).toEqual(['a', 'b']);
});
