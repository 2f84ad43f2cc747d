import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AppDeps } from '../../src/app.ts';
import { readEvents } from '../support/app/event-reader.ts';
import { call, listOf, post, problemOf } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { API_KEY, appForTest } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const MAX_BODY = 2 * 1024 * 1024;
const shedMetric = 'dawatch_http_requests_shed_total';

async function bounded(tuning: AppDeps['tuning'] = {}) {
  const lines: string[] = [];
  const database = join(tempFolder(), 'ledger.db');
  const app = await appForTest({ database, tuning, onLog: (line) => lines.push(line) });
  return {
    url: app.url,
    database,
    shedLines: () => lines.filter((line) => line.includes('"http.shed"')),
  };
}

/** Sends many requests in one packet, so that all have arrived before the first response. */
async function postAtOnce(url: string, bodies: readonly object[]): Promise<number[]> {
  const requests = bodies.map((body, index) => {
    const json = JSON.stringify(body);
    const end = index === bodies.length - 1 ? 'connection: close\r\n' : '';
    const head = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
    return `${head}${end}content-length: ${json.length}\r\n\r\n${json}`;
  });
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  socket.write(requests.join(''));
  const received = await text(socket);
  return [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
}

const batch = (name: string, size: number) => ({
  submission_ids: Array.from({ length: size }, (_, index) => `${name}-${index}`),
});

it('responds separately to requests that share a commit', async () => {
  const app = await bounded();
  const late = { submission_id: 'late', deadline: '2000-01-01T00:00:00Z' };
  const otherUpstream = { submission_id: 'elsewhere', upstream: 'moon' };
  const bodies = [
    batch('a', 3),
    { submission_id: 'b' },
    late,
    { submission_id: 'b' },
    otherUpstream,
    batch('c', 2),
  ];
  expect(await postAtOnce(app.url, bodies)).toEqual([202, 202, 400, 202, 400, 202]);
  const { submissions } = listOf(await call(app.url, '/v1/submissions'));
  expect(submissions.map(({ submission_id }) => submission_id)).toEqual([
    'c-1',
    'c-0',
    'b',
    'a-2',
    'a-1',
    'a-0',
  ]);
});

describe('bodies being received', () => {
  const HEAD = `POST /v1/submissions HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\ncontent-type: application/json\r\n`;
  const large = JSON.stringify(batch('large', 1)).padEnd(MAX_BODY);
  const json = { 'content-type': 'application/json' };
  let received = '';

  /** Starts many bodies of 2 MiB at once, and sends the given number of bytes of each. */
  async function begin(
    url: string,
    count: number,
    bytes: number,
    header = `content-length: ${MAX_BODY}\r\n`,
  ) {
    const { hostname, port } = new URL(url);
    received = '';
    return Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect(Number(port), hostname);
        onTestFinished(() => void socket.destroy());
        socket.on('error', () => undefined);
        socket.write(`${HEAD}${header}expect: 100-continue\r\n\r\n`);
        // The server has read the head and waits for the body.
        expect(String((await once(socket, 'data'))[0])).toContain('100 Continue');
        const body = ' '.repeat(bytes);
        socket.on('data', (part) => (received += part));
        socket.write(header.startsWith('transfer') ? `${bytes.toString(16)}\r\n${body}\r\n` : body);
        return socket;
      }),
    );
  }

  it.each([
    ['declared', undefined],
    ['chunked', 'transfer-encoding: chunked\r\n'],
  ])('are limited, and no longer count when their clients disconnect: %s', async (_, header) => {
    const app = await bounded();
    const slow = await begin(app.url, 16, MAX_BODY - 2_048, header);
    const refused = await eventually(async () => {
      const response = await post(app.url, large, json);
      expect(response.status).toBe(503);
      return response;
    });
    expect(problemOf(refused).detail).toMatch(/try again in 5 s$/);
    expect(refused.headers['retry-after']).toBe('5');
    expect((await call(app.url, '/livez')).status).toBe(200);
    for (const socket of slow.slice(0, 2)) socket.destroy();
    await eventually(async () => expect((await post(app.url, large, json)).status).toBe(202));
  });

  it('are refused while they are received, once memory is exhausted', async () => {
    const app = await bounded();
    await begin(app.url, 20, MAX_BODY - 1);
    await eventually(() =>
      expect(received).toMatch(/503 .*connection: close.*too many ids are waiting/is),
    );
    expect((received.match(/HTTP\/1.1 503/g) ?? []).length).toBeLessThanOrEqual(5);
  });
});

it('limits requests held open: 503 with Retry-After until one ends', async () => {
  const app = await bounded({ maxHeldOpen: 2 });
  await post(app.url, { submission_id: 'open' });
  const reader = await readEvents(app.url);
  await readEvents(app.url);
  for (const path of ['/v1/events', '/v1/submissions/open/wait?timeout_s=240']) {
    const refused = await call(app.url, path);
    expect([problemOf(refused).status, refused.headers['retry-after']]).toEqual([503, '30']);
  }
  expect(reading((await scrape(app.url)).text, shedMetric, { reason: 'held_open' })).toBe(2);
  expect((await call(app.url, '/v1/submissions')).status).toBe(200);
  reader.cut();
  await expect
    .poll(async () => (await call(app.url, '/v1/submissions/open/wait?timeout_s=0')).status)
    .toBe(200);
});
