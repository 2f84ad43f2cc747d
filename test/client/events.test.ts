import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConnectionError, DawatchClient, type FeedEvent } from '../../src/client/index.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { API_KEY, appForTest, openApp, useAppWithSandbox } from '../support/app/running-app.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const app = useAppWithSandbox({ tuning: { alertCheckMs: 3_600_000 } });
const client = (url = app.url, apiKey = API_KEY) => new DawatchClient({ url, apiKey });
const count = (to: number) => Array.from({ length: to }, (_, index) => index + 1);

type Options = NonNullable<Parameters<DawatchClient['events']>[0]>;

/** Reads until the given number of events was received. */
async function take(events: AsyncIterable<FeedEvent>, many: number): Promise<FeedEvent[]> {
  const received: FeedEvent[] = [];
  for await (const event of events) if (received.push(event) >= many) break;
  return received;
}

/** Reads in the background until it is stopped. */
function listen(at: DawatchClient, options: Options = {}) {
  const stop = new AbortController();
  const received: FeedEvent[] = [];
  const errors: Error[] = [];
  const reading = (async () => {
    const onRetry: Options['onRetry'] = ({ error }) => void errors.push(error);
    for await (const event of at.events({ ...options, signal: stop.signal, onRetry }))
      received.push(event);
  })();
  onTestFinished(() => stop.abort());
  const has = (many: number) =>
    eventually(() => expect(received.length).toBeGreaterThanOrEqual(many));
  return { receivedEvents: received, errors, has, stop: () => stop.abort(), reading };
}

it('yields the events of a submission', async () => {
  const id = app.submit();
  await client().track([id], { metadata: { order: 7 } });
  const [event] = await take(
    client().events({ after: 0, submissionId: id, types: ['submission.finalized'] }),
    1,
  );
  expect(event).toMatchObject({
    id: expect.stringMatching(/^evt_/),
    seq: expect.any(Number),
    type: 'submission.finalized',
    data: { submission: { submission_id: id, status: 'finalized', metadata: { order: 7 } } },
  });
});

it('begins with events after the connection', async () => {
  await client().track(['before'], { upstream: 'other' });
  await client().cancel('before');
  const listener = listen(client(), { types: ['submission.cancelled'] });
  for (let index = 0; listener.receivedEvents.length === 0; index += 1) {
    await client().track([`now-${index}`], { upstream: 'other' });
    await client().cancel(`now-${index}`);
  }
  const [first] = listener.receivedEvents;
  expect(first?.data).toMatchObject({
    submission: { submission_id: expect.stringMatching(/^now-/) },
  });
});

it('continues through cut connections without gap or repeat', async () => {
  const ids = Array.from({ length: 60 }, (_, index) => `cut-${index}`);
  await client().track(['uncut', ...ids], { upstream: 'other' });
  await client().cancel('uncut');
  const proxy = await startCuttingProxy(app.url);
  const listener = listen(client(proxy.url), { after: 0 });
  const isReceived = (id: unknown) =>
    eventually(() =>
      expect(listener.receivedEvents.map(({ data }) => data)).toContainEqual(
        expect.objectContaining({ submission: expect.objectContaining({ submission_id: id }) }),
      ),
    );
  await listener.has(1);
  for (const [index, id] of ids.entries()) {
    if (index % 15 === 7) proxy.cut();
    await client().cancel(id);
    if (index % 15 === 11) await isReceived(id);
  }
  await isReceived(ids.at(-1));
  expect(listener.receivedEvents.map(({ seq }) => seq)).toEqual(
    count(listener.receivedEvents.length),
  );
  expect(listener.errors.length).toBeGreaterThanOrEqual(3);
  for (const error of listener.errors) expect(error).toBeInstanceOf(ConnectionError);
});

it('continues after a restart of the server without gap or repeat', async () => {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  onTestFinished(() => sandbox.close());
  const setting = { database: join(tempFolder(), 'ledger.db'), upstreamUrl: sandbox.url };
  const before = await openApp(setting);
  const listener = listen(client(before.url), { after: 0, types: ['submission.finalized'] });
  const submit = () => Array.from({ length: 10 }, () => sandbox.model.submit('data', Date.now()));
  const [first, second] = [submit(), submit()];
  await client(before.url).track(first);
  await listener.has(5);
  await client(before.url).track(second);
  await before.close();
  await appForTest({ ...setting, port: Number(new URL(before.url).port) });
  await listener.has(20);
  const receivedEvents = listener.receivedEvents.map(
    ({ data }) => 'submission' in data && data.submission.submission_id,
  );
  expect(receivedEvents.toSorted()).toEqual([...first, ...second].toSorted());
  expect(listener.errors.length).toBeGreaterThan(0);
});

describe('ends', () => {
  it('when its signal aborts, at any stage', async () => {
    const listener = listen(client());
    const unreachable = listen(client('http://127.0.0.1:1'));
    await eventually(() => expect(unreachable.errors.length).toBeGreaterThan(0));
    listener.stop();
    unreachable.stop();
    await Promise.all([listener.reading, unreachable.reading]);
    expect(await take(client().events({ signal: AbortSignal.abort() }), 1)).toEqual([]);
  });
});

describe('throws an ApiError without a retry', () => {
  it.each<[string, number, string, Options]>([
    ['for a key that is not accepted', 401, 'nobody', {}],
    ['for an unknown type', 400, API_KEY, { types: ['submission.done'] }],
    ['for a position of another ledger', 400, API_KEY, { after: 999_999 }],
  ])('%s', async (_, status, apiKey, options) => {
    const retries: unknown[] = [];
    const onRetry = (retry: unknown) => void retries.push(retry);
    const reading = take(client(app.url, apiKey).events({ ...options, onRetry }), 1);
    await expect(reading).rejects.toMatchObject({ name: 'ApiError', status });
    expect(retries).toEqual([]);
  });
});

describe('retries', () => {
  const EVENT =
    'id: 3\ndata: {"id":"evt_3","type":"upstream.up","data":{"upstream":"default"}}\n\n';
  const PROBLEM = '{"title":"Not possible","detail":"now"}';
  it.each<[string, number, string, string]>([
    ['if a proxy does not reach the server', 502, 'text/html', '<h1>Bad Gateway</h1>'],
    ['if the server is unavailable', 503, 'application/problem+json', PROBLEM],
    ['if another program responds', 200, 'text/html', '<h1>Welcome</h1>'],
    ['if the stream breaks off within an event', 200, 'text/event-stream', EVENT.slice(0, 20)],
  ])('%s', async (_, status, type, body) => {
    const server = await serve((__, response) => {
      const isFirst = server.requests.length === 1;
      response.writeHead(isFirst ? status : 200, {
        'content-type': isFirst ? type : 'text/event-stream',
      });
      if (isFirst) response.end(body);
      else response.write(EVENT);
    });
    const errors: Error[] = [];
    const events = client(server.url).events({
      after: 2,
      onRetry: ({ error }) => errors.push(error),
    });
    expect(await take(events, 1)).toMatchObject([{ seq: 3, id: 'evt_3' }]);
    expect(errors).toHaveLength(1);
    expect(server.requests.map(({ headers }) => headers['last-event-id'])).toEqual(['2', '2']);
  });
});

it('reports deleted events with onGap', async () => {
  const event = {
    id: 'evt_1',
    type: 'upstream.up',
    timestamp: '',
    data: { sequence: 9, upstream: 'default' },
  };
  const gap = { id: 'gap_0_8', type: 'feed.gap', data: { after: 0, through: 8 } };
  const blocks = [gap, event].map(
    (body, index) => `id: ${index === 0 ? 0 : 9}\ndata: ${JSON.stringify(body)}\n\n`,
  );
  const server = await serve((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(blocks.join(''));
  });
  const gaps: unknown[] = [];
  const receivedEvents = await take(
    client(server.url).events({ after: 0, onGap: (gap) => gaps.push(gap) }),
    1,
  );
  expect(gaps).toEqual([{ after: 0, through: 8 }]);
  expect(receivedEvents).toEqual([{ ...event, seq: 9 }]);
});
