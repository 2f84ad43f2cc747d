import { once } from 'node:events';
import { connect } from 'node:net';
import { Readable } from 'node:stream';
import { fastify } from 'fastify';
import { expect, it, onTestFinished } from 'vitest';
import { serializeExpensiveRoutes } from '../../src/http/connections.ts';
import { eventually } from '../support/until.ts';

/** A server whose handlers begin, and then wait until `finish`. */
async function open() {
  const app = fastify();
  onTestFinished(() => app.close());
  serializeExpensiveRoutes(app);
  const running: { path: string; finish: () => void }[] = [];
  const begun: string[] = [];
  for (const path of ['/list', '/other-list'])
    app.get(path, { config: { isExpensive: true } }, async ({ url }, reply) => {
      begun.push(url);
      if (url.endsWith('fails')) throw new Error('a failure');
      await new Promise<void>((finish) => running.push({ path: url, finish }));
      if (url.endsWith('text')) return 'x'.repeat(20_000_000);
      const stream = () => Readable.from(['x'.repeat(20_000_000)]);
      if (url.endsWith('reply')) return reply.send(stream());
      return url.endsWith('stream') ? stream() : 'done';
    });
  app.get('/feed', (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200).write('begins, and never ends');
  });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const get = (path: string) => fetch(`${url}${path}`).then((response) => response.text());
  /** Sends requests over one connection whose responses are not read. */
  const send = async (...paths: string[]) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    await once(socket, 'connect');
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    return socket.pause();
  };
  return {
    get,
    send,
    begun,
    reached: (...paths: string[]) => eventually(() => expect(begun).toEqual(paths)),
    finish: () => running.shift()?.finish(),
    /** Whether everything that was received so far has been served. */
    settled: () => get('/livez'),
  };
}

it('the next handler of an expensive route begins when the one before has ended, also by a failure', async () => {
  const { get, begun, reached, finish, settled } = await open();
  const responses = [get('/list')];
  await reached('/list');
  responses.push(get('/other-list?fails'), get('/other-list'));
  await settled();
  expect(begun).toEqual(['/list']);
  finish();
  await eventually(() =>
    expect(begun.toSorted()).toEqual(['/list', '/other-list', '/other-list?fails']),
  );
  finish();
  expect((await Promise.all(responses)).filter((text) => text === 'done')).toHaveLength(2);
});

it.each(['/list?text', '/list?stream', '/list?reply'])(
  'a client that does not read %s does not block others',
  async (path) => {
    const [route = ''] = path.split('?');
    const { send, get, reached, finish } = await open();
    await send(path);
    await reached(path);
    finish();
    const other = get(route);
    await reached(path, route);
    finish();
    expect(await other).toBe('done');
  },
);

it('a request whose client disconnects while it waits is not served', async () => {
  const { get, send, begun, reached, finish, settled } = await open();
  const first = get('/other-list');
  await reached('/other-list');
  const socket = await send('/other-list?gone');
  await settled();
  socket.destroy();
  await settled();
  finish();
  expect(await first).toBe('done');
  const last = get('/other-list?last');
  await eventually(() => expect(begun).toContain('/other-list?last'));
  finish();
  expect(await last).toBe('done');
  expect(begun).toEqual(['/other-list', '/other-list?last']);
});

it('a pipelined request waits until the response before it is sent, and does not delay others', async () => {
  const { get, send, reached, finish } = await open();
  const socket = await send('/list?text', '/list?behind');
  await reached('/list?text');
  finish();
  const other = get('/other-list');
  await reached('/list?text', '/other-list');
  finish();
  expect(await other).toBe('done');
  socket.resume();
  await reached('/list?text', '/other-list', '/list?behind');
});

it('requests behind a response that never ends do not delay those of others', async () => {
  const { get, send, reached, finish } = await open();
  await send('/feed', '/list?behind', '/other-list?behind', '/list?last');
  await reached('/list?behind');
  finish();
  let isServed = false;
  const others = Promise.all([get('/list'), get('/other-list')]).finally(() => {
    isServed = true;
  });
  await eventually(() => {
    finish();
    expect(isServed).toBe(true);
  });
  expect(await others).toEqual(['done', 'done']);
});
