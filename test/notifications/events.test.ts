import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readEvents } from '../support/app/event-reader.ts';
import { call, pathOf, post, problemOf } from '../support/app/http-calls.ts';
import { API_KEY, appForTest, useApp } from '../support/app/running-app.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const HEARTBEAT_MS = 15_000;
const clock = new HeldClock(HEARTBEAT_MS);
const app = useApp({ clock, tuning: { alertCheckMs: 3_600_000 } });

const track = (submission_ids: string[], fields = {}) =>
  post(app.url, { submission_ids, ...fields });
const cancel = (id: string) => call(app.url, pathOf(id), { method: 'DELETE' });
/** Tracked at an unreachable upstream, so that it ends only when it is cancelled. */
const open = (...ids: string[]) => track(ids, { upstream: 'other' });

/**
 * Returns the newest sequence number. Nothing else adds events: the outage of "other" is reported
 * before the first test.
 */
async function newest(): Promise<number> {
  const reader = await readEvents(app.url);
  reader.cut();
  return reader.position();
}

app.prepare(async () => {
  await open('outage');
  const headers = { 'x-api-key': API_KEY };
  const { body } = await fetch(`${app.url}/v1/events?after=0`, { headers });
  for await (const bytes of body ?? []) if (Buffer.from(bytes).includes('upstream.down')) break;
});

it('sends new events as they occur', async () => {
  const before = await newest();
  const id = randomUUID();
  const reader = await readEvents(app.url, '?type=submission.*');
  expect(reader.response.headers).toMatchObject({
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  expect(reader.position()).toBeGreaterThanOrEqual(before);
  await open(id);
  await cancel(id);
  await reader.has(1);
  expect(reader.received).toMatchObject([
    {
      type: 'submission.cancelled',
      body: {
        data: {
          previous_status: 'tracking',
          submission: { submission_id: id, status: 'cancelled' },
        },
      },
    },
  ]);
  expect(reader.received[0]?.seq).toBeGreaterThan(before);
});

it('resumes after the event in Last-Event-ID, which has precedence over `after`', async () => {
  const begin = await newest();
  const id = randomUUID();
  await open(id);
  await cancel(id);
  const reader = await readEvents(app.url, '?after=0', { 'last-event-id': String(begin) });
  await reader.has(1);
  expect(reader.received[0]?.seq).toBe(begin + 1);
});

describe('filters', () => {
  it.each<[string, string, string[]]>([
    ['one type', '?type=submission.cancelled', ['cancelled x', 'cancelled y']],
    [
      'types, repeated and with commas',
      '?type=upstream.up&type=submission.stuck,submission.*',
      ['cancelled x', 'cancelled y'],
    ],
    ['events of upstreams', '?type=upstream.*', []],
    ['metadata of which one entry differs', '?metadata={"at":"=y","team":"other"}', []],
    [
      'several metadata entries',
      '?metadata={"at":"=y","team":"billing","n":5,"ok":true,"no":null}',
      ['cancelled y'],
    ],
    ['metadata of another type', '?metadata={"n":"5"}', []],
    [
      'metadata with a number that exceeds JavaScript numbers',
      '?metadata={"long":12345678901234567890}',
      ['cancelled x', 'cancelled y'],
    ],
    ['one submission', '?submission_id=y', ['cancelled y']],
  ])('by %s', async (name, query, expected) => {
    const [x, y] = ['x', 'y'].map((last) => `${name}-${last}`.replaceAll(/[ ,]+/g, '-')) as [
      string,
      string,
    ];
    const begin = await newest();
    const common = `"team":"billing","n":5,"ok":true,"no":null,"long":12345678901234567890`;
    for (const id of [x, y])
      await post(
        app.url,
        `{"submission_id":"${id}","upstream":"other","metadata":{"at":"${id}",${common}}}`,
      );
    const path = encodeURI(query.replace('"=y"', `"${y}"`).replace('=y', `=${y}`));
    const live = await readEvents(app.url, path);
    await cancel(x);
    await cancel(y);
    const resumed = await readEvents(app.url, path, { 'last-event-id': String(begin) });
    for (const reader of [live, resumed]) {
      // A heartbeat contains the position for readers without matching events.
      await eventually(() => {
        clock.fire(HEARTBEAT_MS);
        expect(reader.position()).toBe(begin + 2);
      });
      const statuses = reader.received.map(({ body }) =>
        'submission' in body.data
          ? `${body.data.submission.status} ${body.data.submission.submission_id.at(-1)}`
          : '',
      );
      expect(statuses).toEqual(expected);
    }
  });
});

describe('refuses with 400 and a reason:', () => {
  const HUGE = '9'.repeat(15);
  it.each<[string, string, Record<string, string>, string, string]>([
    ['a word as the id', '', { 'last-event-id': 'abc' }, 'last-event-id', 'sequence number'],
    [
      'an id of another ledger',
      '',
      { 'last-event-id': HUGE },
      'last-event-id',
      'there is no event',
    ],
    ['a position in the future', `?after=${HUGE}`, {}, 'after', 'there is no event'],
    [
      'an unknown type',
      '?type=submission.done',
      {},
      'type',
      '"submission.done" is not an event type',
    ],
    ['metadata that is not JSON', '?metadata=team', {}, 'metadata', 'an object whose values'],
    [
      'metadata that a parser would drop',
      '?metadata={"__proto__":1,"a":2}',
      {},
      'metadata',
      'an object whose values',
    ],
    ['an id with spaces', '?submission_id=a%20b', {}, 'submission_id', 'a submission id is'],
    ['an unknown parameter', '?since=1', {}, '', 'since'],
  ])('%s', async (_, query, headers, pointer, detail) => {
    const response = await call(app.url, `/v1/events${encodeURI(query).replaceAll('%25', '%')}`, {
      headers,
    });
    expect(response.status).toBe(400);
    const problem = problemOf(response);
    expect(problem.errors?.[0]?.pointer).toBe(pointer);
    expect(problem.detail.toLowerCase()).toContain(detail);
  });
});

it('sends no chunks, and announces the end of the connection', async () => {
  const { hostname, port } = new URL(app.url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write(`GET /v1/events HTTP/1.1\r\nhost: x\r\nx-api-key: ${API_KEY}\r\n\r\n`);
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  await eventually(() => expect(received).toMatch(/\r\n\r\n: dawatch \d+\nid: \d+\n\n/));
  expect(received.toLowerCase()).toContain('\r\nconnection: close\r\n');
  expect(received.toLowerCase()).not.toContain('transfer-encoding');
});

describe('closing', () => {
  it('ends every stream without waiting for readers that do not read', async () => {
    const closing = await appForTest();
    const reader = await readEvents(closing.url);
    const silent = await readEvents(closing.url);
    silent.response.pause();
    await closing.close();
    await reader.ended;
    silent.cut();
    await expect(
      fetch(`${closing.url}/v1/events`, { headers: { 'x-api-key': API_KEY } }),
    ).rejects.toThrow();
  });

  it('removes readers that disconnected', async () => {
    const readers = await Promise.all([readEvents(app.url), readEvents(app.url)]);
    for (const reader of readers) reader.cut();
    await Promise.all(readers.map(({ ended }) => ended));
    // The heartbeats stop with the last reader.
    await eventually(() => {
      clock.fire(HEARTBEAT_MS);
      expect(clock.held(HEARTBEAT_MS)).toBe(0);
    });
  });
});
