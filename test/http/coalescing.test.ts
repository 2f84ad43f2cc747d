import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { coalesceRequests, coalesceResponses } from '../../src/http/coalescing.ts';
import type { TrackResult } from '../../src/submissions/ports.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { TrackingQueue } from '../../src/submissions/tracking-queue.ts';

describe('requests on several connections', () => {
  let app: FastifyInstance;
  const events: string[] = [];
  let connections: Socket[] = [];

  beforeEach(async () => {
    app = fastify();
    coalesceRequests(app);
    coalesceResponses(app);
    app.server.on('request', () => events.push('arrived'));
    app.addHook('onRequest', async () => undefined);
    app.get('/', async (_request, reply) => {
      events.push('served');
      reply.raw.once('finish', () => events.push('answered'));
      return 'done';
    });
    app.get('/bad', async (_request, reply) => reply.header('x-name', 'no\nheader').send('done'));
    app.get('/twice', async (_request, reply) => {
      reply.send('done');
    });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const { port } = app.server.address() as AddressInfo;
    connections = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
    for (const connection of connections) expect(await request(connection)).toContain('200 OK');
    events.length = 0;
  });

  afterEach(async () => {
    for (const connection of connections) connection.destroy();
    await app.close();
  });

  it('that arrive together are served together, and their responses sent together', async () => {
    const responses = await Promise.all(connections.map((connection) => request(connection)));
    expect(responses.filter((response) => response.includes('200 OK'))).toHaveLength(3);
    const [arrived, served, responded] = ['arrived', 'served', 'answered'].map((what) => [what, what, what]);
    expect(events).toEqual([arrived, served, responded].flat());
  });

  it.each(['/bad', '/twice'])('get their responses although one of them cannot: %s', async (path) => {
    const [first, ...others] = connections as [Socket, ...Socket[]];
    const faulty = request(first, path);
    const responses = await Promise.all(others.map((connection) => request(connection)));
    for (const response of responses) expect(response).toContain('200 OK');
    expect(await faulty).toContain(path === '/bad' ? 'HTTP/1.1 500' : '200 OK');
  });

  it('that arrive while ids are committed are served before the next commit', async () => {
    const [connection] = connections as [Socket];
    let response: Promise<string> | undefined;
    const queue = new TrackingQueue({ maxWaitMs: 1_000 });
    const trackGroups = (groups: readonly (readonly TrackRequest[])[]): TrackResult[] => {
      events.push(...groups.flat().map(({ submissionId }) => submissionId));
      response ??= request(connection);
      return groups.map(() => ({ kind: 'tracked', submissions: [] }));
    };
    const unused = () => expect.fail('single ids share a commit');
    const watcher = { trackGroups, track: unused, refusalOf: unused };
    const target = { watcher, ledger: { whenDurable: () => undefined } };
    const common = {
      upstream: 'default',
      deadlineAt: 3,
      graceEndsAt: 2,
      stuckAt: 1,
      metadata: null,
      callbackUrl: null,
    };
    const take = (submissionId: string) => queue.take([{ submissionId, ...common }], target);
    await Promise.all([take('first'), take('next')]);
    await response;
    expect(events.filter((what) => what !== 'arrived' && what !== 'answered')).toEqual(['first', 'served', 'next']);
  });
});

/** Sends a request at once; resolves with the response. */
async function request(connection: Socket, path = '/'): Promise<string> {
  connection.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`);
  const [response] = (await once(connection, 'data')) as [Buffer];
  return response.toString();
}
