import type { ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { ApiError, DawatchClient, type Submission } from '../../src/client/index.ts';
import { API_KEY, useAppWithSandbox } from '../support/app/running-app.ts';
import { startCuttingProxy } from '../support/servers/cutting-proxy.ts';
import { serve } from '../support/servers/upstream-server.ts';

const app = useAppWithSandbox();
const client = (url = app.url) => new DawatchClient({ url, apiKey: API_KEY });
const named = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

/** Reads until the end; `onYield` is called for each submission. */
async function readAll(
  submissions: AsyncIterable<Submission>,
  onYield: (submission: Submission) => unknown = () => undefined,
): Promise<Submission[]> {
  const found: Submission[] = [];
  for await (const submission of submissions) {
    found.push(submission);
    await onYield(submission);
  }
  return found;
}

const idsOf = (submissions: readonly Submission[]) =>
  submissions.map(({ submission_id }) => submission_id).toSorted();

it('yields each submission once when it is final, and ends after the last one', async () => {
  const ids = Array.from({ length: 3 }, () => app.submit());
  await client().track(ids);
  const [first = ''] = ids;
  const found = await readAll(client().untilFinal([...ids, first.toUpperCase()]));
  expect(idsOf(found)).toEqual(ids.toSorted());
  for (const submission of found)
    expect(submission).toMatchObject({ status: 'finalized', polls: expect.any(Number) });
});

it('looks up thousands in a few requests: those that ended before, and those that end while it waits', async () => {
  const ids = named('many', 2_500);
  const ended = new Set(ids.slice(0, 1_200));
  const lookups: number[] = [];
  const stateOf = (submission_id: string) => ({
    submission_id,
    status: ended.has(submission_id) ? 'failed' : 'pending',
  });
  let feed: ServerResponse | undefined;
  const server = await serve(async (request, response) => {
    if (request.method === 'GET') {
      feed = response.writeHead(200, { 'content-type': 'text/event-stream' });
      feed.write(': dawatch\nid: 0\n\n');
      return;
    }
    const { submission_ids }: { submission_ids: string[] } = JSON.parse(await text(request));
    lookups.push(submission_ids.length);
    const submissions = submission_ids.map(stateOf);
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ submissions, not_found: [], remaining: [] }));
    if (lookups.length !== 3) return;
    for (const [index, id] of ids.slice(1_200).entries()) {
      ended.add(id);
      const event = { type: 'submission.failed', data: { submission: { submission_id: id } } };
      feed?.write(`id: ${index + 1}\ndata: ${JSON.stringify(event)}\n\n`);
    }
  });
  expect(idsOf(await readAll(client(server.url).untilFinal(ids)))).toEqual(ids.toSorted());
  expect(lookups.slice(0, 3)).toEqual([1_000, 1_000, 500]);
  expect(lookups.length).toBeLessThan(100);
});

it('yields those that end while its connections are cut', async () => {
  const proxy = await startCuttingProxy(app.url);
  const ids = named('cut', 8);
  await client().track(ids, { upstream: 'other' });
  await client().cancel('cut-0');
  const found = await readAll(client(proxy.url).untilFinal(ids), async (submission) => {
    const next = Number(submission.submission_id.slice('cut-'.length)) + 1;
    if (next % 4 === 3) proxy.cut();
    if (next < ids.length) await client().cancel(`cut-${next}`);
  });
  expect(idsOf(found)).toEqual(ids.toSorted());
});

it('looks up all open ids again after a gap in the feed', async () => {
  const gap = { id: 'gap_0_8', type: 'feed.gap', data: { after: 0, through: 8 } };
  const statuses = ['pending', 'expired'];
  let sendGap: () => void = () => undefined;
  const server = await serve((request, response) => {
    if (request.method === 'GET') {
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(': dawatch\nid: 0\n\n');
      sendGap = () => response.write(`id: 0\ndata: ${JSON.stringify(gap)}\n\n`);
      return;
    }
    const submissions = [{ submission_id: 'a', status: statuses.shift() }];
    const body = { submissions, not_found: [], remaining: [] };
    response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    sendGap();
  });
  expect(await readAll(client(server.url).untilFinal(['a']))).toMatchObject([
    { status: 'expired' },
  ]);
});

it('ends at once without ids', async () => {
  expect(await readAll(client('http://127.0.0.1:1').untilFinal([]))).toEqual([]);
});

describe('rejects', () => {
  it('with the ids that are not tracked', async () => {
    const error = await readAll(client().untilFinal(named('never', 8))).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status: 404,
      message:
        'Not found: these ids are not tracked: never-0, never-1, never-2, never-3, never-4 and 3 more',
    });
  });

  it('with the reason of its signal, before and while it waits', async () => {
    await client().track(['aborted'], { upstream: 'other' });
    const stop = new AbortController();
    const waiting = readAll(client().untilFinal(['aborted'], { signal: stop.signal }));
    setImmediate(() => stop.abort(new Error('enough')));
    await expect(waiting).rejects.toThrow('enough');
    const { signal } = stop;
    await expect(readAll(client().untilFinal(['aborted'], { signal }))).rejects.toThrow('enough');
  });
});
