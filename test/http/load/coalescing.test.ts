import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Admission } from '../../../src/http/load/admission.ts';
import { coalesceRequests, coalesceResponses } from '../../../src/http/load/coalescing.ts';

describe('requests on several connections', () => {
  let app: FastifyInstance;
  const happened: string[] = [];
  let connections: Socket[] = [];

  beforeEach(async () => {
    app = fastify();
    coalesceRequests(app);
    coalesceResponses(app);
    app.server.on('request', () => happened.push('arrived'));
    app.addHook('onRequest', async () => undefined);
    app.get('/', async (_request, reply) => {
      happened.push('served');
      reply.raw.once('finish', () => happened.push('answered'));
      return 'done';
    });
    app.get('/bad', async (_request, reply) => reply.header('x-name', 'no\nheader').send('done'));
    app.get('/twice', async (_request, reply) => {
      reply.send('done');
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    connections = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
    for (const connection of connections) expect(await ask(connection)).toContain('200 OK');
    happened.length = 0;
  });

  afterEach(async () => {
    for (const connection of connections) connection.destroy();
    await app.close();
  });

  it('that arrive together are served together, and their responses sent together', async () => {
    const answers = await Promise.all(connections.map((connection) => ask(connection)));
    expect(answers.filter((answer) => answer.includes('200 OK'))).toHaveLength(3);
    const [arrived, served, answered] = ['arrived', 'served', 'answered'].map((what) => [what, what, what]);
    expect(happened).toEqual([arrived, served, answered].flat());
  });

  it.each(['/bad', '/twice'])('get their responses although one of them cannot: %s', async (path) => {
    const [first, ...others] = connections as [Socket, ...Socket[]];
    const faulty = ask(first, path);
    const answers = await Promise.all(others.map((connection) => ask(connection)));
    for (const answer of answers) expect(answer).toContain('200 OK');
    expect(await faulty).toContain(path === '/bad' ? 'HTTP/1.1 500' : '200 OK');
  });

  it('that arrive while ids are committed are served before the next commit', async () => {
    const [connection] = connections as [Socket];
    let answer: Promise<string> | undefined;
    const admission = new Admission({
      processBatch: (names: readonly string[]) => {
        happened.push(...names);
        answer ??= ask(connection);
        return [...names];
      },
      maxWaitMs: 1_000,
      maxHeldOpen: 1,
      onShed: () => undefined,
    });
    await Promise.all([admission.take('first', 1), admission.take('next', 1)]);
    await answer;
    expect(happened.filter((what) => what !== 'arrived' && what !== 'answered')).toEqual(['first', 'served', 'next']);
  });
});

/** Is written at once; resolves to the answer. */
async function ask(connection: Socket, path = '/'): Promise<string> {
  connection.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`);
  const [answer] = (await once(connection, 'data')) as [Buffer];
  return answer.toString();
}
