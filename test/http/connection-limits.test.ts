import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { limitUnreadResponses } from '../../src/http/connections.ts';
import { post } from '../support/app/http-calls.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';
import { eventually } from '../support/until.ts';

const app = useApp();
const LIMIT = 16;

function open(url: string) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.setEncoding('latin1').on('data', (part) => {
    received += part;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return {
    socket,
    closed,
    received: () => received,
    statuses: () =>
      [...received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status)),
  };
}

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n\r\n`;

describe('pipelined requests', () => {
  it.each(['/livez', '/v1/submissions', '/nowhere'])(
    'are served up to 16 at once: %s',
    async (path) => {
      const { socket, statuses } = open(app.url);
      for (let round = 1; round <= 3; round++) {
        socket.write(GET(path).repeat(LIMIT));
        await eventually(() => expect(statuses()).toHaveLength(round * LIMIT));
      }
      expect(new Set(statuses())).toEqual(new Set([path === '/nowhere' ? 404 : 200]));
    },
  );

  it('destroy the connection above the limit', async () => {
    const { socket, statuses, closed } = open(app.url);
    socket.write(GET('/livez').repeat(LIMIT + 5));
    await closed;
    expect(statuses().length).toBeLessThanOrEqual(LIMIT);
  });

  it.each(['/%zz', `/v1/submissions/${'a'.repeat(400)}`])(
    'end the connection at the first one that the router refuses: %s',
    async (path) => {
      const { socket, statuses, received, closed } = open(app.url);
      socket.write(GET(path).repeat(1_000));
      await closed;
      expect(new Set(statuses())).toEqual(new Set([400]));
      expect(received()).toContain('connection: close');
    },
  );

  it('count also while they are held open', async () => {
    await post(app.url, { submission_id: 'waited-for' });
    const { socket, statuses, closed } = open(app.url);
    socket.write(GET('/v1/submissions/waited-for/wait?timeout_s=60').repeat(LIMIT));
    socket.write(GET('/livez').repeat(5));
    await closed;
    expect(statuses()).toEqual([]);
  });
});

describe('unread responses', () => {
  /** Exceeds the buffers of the operating system for two sockets. */
  const LARGE_BODY = 'x'.repeat(16 * 1024 * 1024);

  async function serve(maxChars: number) {
    const lines: string[] = [];
    const server = fastify({
      logger: { level: 'warn', stream: { write: (line) => lines.push(line) } },
    });
    onTestFinished(() => server.close());
    limitUnreadResponses(server, maxChars);
    server.get('/large', async () => LARGE_BODY);
    const url = await server.listen({ port: 0, host: '127.0.0.1' });
    const request = async (count = 1): Promise<Socket> => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      socket.on('error', () => undefined);
      socket.write('GET /large HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(count));
      await once(socket, 'readable');
      return socket;
    };
    return {
      url,
      sendRequest: request,
      dropped: () => lines.filter((line) => line.includes('http.slow_client_closed')).length,
    };
  }
  /** A client detects a closed connection only if it continues to read. */
  const isCut = async (socket: Socket) => {
    socket.resume();
    let read = socket.bytesRead;
    socket.on('data', () => {
      read = socket.bytesRead;
    });
    await Promise.race([
      once(socket, 'close'),
      eventually(() => expect(read).toBeGreaterThan(LARGE_BODY.length)),
    ]);
    return read <= LARGE_BODY.length;
  };

  it('are dropped with their connection above the limit, oldest first', async () => {
    const { sendRequest: request, dropped } = await serve(3 * LARGE_BODY.length);
    const sockets = [await request(), await request(), await request()];
    expect(dropped()).toBe(0);
    sockets.push(await request());
    expect(dropped()).toBe(1);
    expect(await Promise.all(sockets.map(isCut))).toEqual([true, false, false, false]);
  });

  it('stop counting once they are read or the client disconnects', async () => {
    const { sendRequest: request, url, dropped } = await serve(2 * LARGE_BODY.length);
    for (let round = 0; round < 2; round++) {
      expect((await fetch(`${url}/large`).then((response) => response.text())).length).toBe(
        LARGE_BODY.length,
      );
      const left = await request();
      left.destroy();
      await once(left, 'close');
    }
    await request();
    expect(dropped()).toBe(0);
  });

  it('are not dropped if there is only one', async () => {
    const { sendRequest: request, dropped } = await serve(1);
    const socket = await request();
    expect([dropped(), await isCut(socket)]).toEqual([0, false]);
  });
});
