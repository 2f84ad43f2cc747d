import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { HttpResult } from '../../src/lib/http-call.ts';
import { MADE_UP_ID } from '../../src/polling/upstream-health.ts';
import { call, pathOf } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import {
  databaseDown,
  finalized,
  MINUTE_MS,
  openWatcher,
  pending,
  recordNotFound,
  response,
  START_MS,
} from '../support/virtual-time/virtual-watcher.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const DATABASE_ERROR = response(500, { error: 'Database error' });
const ANY_ID = '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325';

/** An upstream that fails for ids that begin with `bad` while `isUp`, and otherwise for all. */
async function serveUpstream(status: number, body: string) {
  const state = { isUp: true };
  const served = await serve((request, reply) => {
    request.resume();
    const id = new URL(request.url ?? '', 'http://here').searchParams.get('submission_id') ?? '';
    if (!state.isUp || id.startsWith('bad')) return reply.writeHead(status).end(body);
    if (!id.startsWith('good'))
      return reply.writeHead(500, JSON_TYPE).end('{"error":"Record not found"}');
    return reply.writeHead(200, JSON_TYPE).end('{"state":"Pending","error":null,"data":{}}');
  });
  const pollsOf = (prefix: string) =>
    served.requests.filter(({ url }) => url?.includes(`submission_id=${prefix}`)).length;
  return { url: served.url, state, pollsOf };
}

async function open(upstreamUrl: string) {
  const log: string[] = [];
  const app = await openApp({
    onLog: (line) => log.push(line),
    database: join(tempFolder(), 'ledger.db'),
    upstreamUrl,
  });
  onTestFinished(() => app.close());
  const get = async (path: string) => JSON.parse((await call(app.url, path)).text);
  return {
    track: (submission_id: string) =>
      call(app.url, '/v1/submissions', { method: 'POST', body: { submission_id } }),
    cancel: (id: string) => call(app.url, pathOf(id), { method: 'DELETE' }),
    lookUp: (id: string) => call(app.url, `/v1/get_submission_info?submission_id=${id}`),
    detailsOf: (id: string) => get(pathOf(id)),
    state: async () => (await get('/readyz')).upstreams.default.state,
    outages: () => log.filter((line) => /upstream\.(down|unauthorized)/.test(line)),
  };
}

describe('one submission that always fails does not affect others', () => {
  it.each<[string, number, string]>([
    ['a 403 of the service', 403, '{"error":"not yours"}'],
    ['a malformed response', 200, '{"stat'],
    ['a page of a firewall', 403, '<html>blocked</html>'],
  ])('with %s', async (_what, status, body) => {
    const world = openWatcher({
      respond: (id) =>
        id === 'bad' ? response(status, body) : id === 'good' ? pending : recordNotFound,
    });
    world.track(['bad']);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.polls.length).toBeGreaterThan(8);
    world.track(['good']);
    await world.clock.advance(5_000);
    expect(world.get('good').status).toBe('pending');
    expect(world.turns).toEqual([]);
  });

  it('over HTTP', async () => {
    const upstream = await serveUpstream(500, '{"error":"Database error"}');
    const app = await open(upstream.url);
    await app.track('bad-1');
    await vi.waitFor(() => expect(upstream.pollsOf('bad-1')).toBeGreaterThan(8), 10_000);
    expect(upstream.pollsOf(MADE_UP_ID), 'nothing else is known').toBeGreaterThan(0);
    expect((await app.lookUp('good-1')).status).toBe(200);
    await app.track('bad-2');
    await vi.waitFor(() => expect(upstream.pollsOf('bad-2')).toBeGreaterThan(8), 10_000);
    expect(await app.state()).toBe('up');
    expect(app.outages()).toEqual([]);
  });
});

it('an outage ends although nothing is tracked any more', async () => {
  const upstream = await serveUpstream(502, '<html>');
  const app = await open(upstream.url);
  await app.track('good-1');
  await expect.poll(() => upstream.pollsOf('good-1')).toBeGreaterThan(0);
  upstream.state.isUp = false;
  await vi.waitFor(async () => {
    await app.lookUp('good-2');
    expect(await app.state()).not.toBe('up');
  }, 10_000);
  await app.cancel('good-1');
  upstream.state.isUp = true;
  await vi.waitFor(async () => expect(await app.state()).toBe('up'), 10_000);
});

describe('an outage is noticed with a single submission', () => {
  it('that was never returned, by a closed port', async () => {
    const app = await open(await deadAddress());
    await app.track(ANY_ID);
    await vi.waitFor(async () => expect(await app.state()).not.toBe('up'), 10_000);
    expect((await app.lookUp('any')).status).toBe(502);
  });

  it.each([
    ['that it never returned', 'a', databaseDown],
    ['that does not find a submission which it returned', 'shown', recordNotFound],
  ])('%s', async (_what, id, failure) => {
    let current: HttpResult = pending;
    const world = openWatcher({ respond: () => current });
    if (id === 'shown') world.track([id]);
    await world.clock.advance(1_000);
    current = failure;
    if (id !== 'shown') world.track([id]);
    await world.clock.advance(5 * MINUTE_MS);
    expect(world.turns).toMatchObject([{ event: 'upstream.down' }]);
    current = finalized;
    await world.clock.advance(MINUTE_MS);
    expect(world.turns).toMatchObject([{ event: 'upstream.down' }, { event: 'upstream.up' }]);
  });
});

describe('the time limits', () => {
  const badFails = (others: HttpResult) => (id: string) =>
    id.startsWith('bad') ? DATABASE_ERROR : others;

  it.each<[string, HttpResult]>([
    ['finds nothing else', recordNotFound],
    ['returns everything else', pending],
  ])('of a submission that always fails pass at an upstream that %s', async (_what, others) => {
    const world = openWatcher({ respond: badFails(others) });
    const deadlineAt = START_MS + 45_000;
    world.track(['bad'], { deadlineAt });
    await world.clock.advance(46_000 + MINUTE_MS);
    expect(world.get('bad').status).toBe('expired');
    expect(world.turns).toEqual([]);
  });

  it('of a submission that fails since it was returned pass, too, if the upstream finds others', async () => {
    let bad: HttpResult = pending;
    const world = openWatcher({ respond: (id) => (id === 'bad' ? bad : finalized) });
    world.track(['other']);
    await world.clock.advance(1_000);
    world.track(['bad'], { deadlineAt: START_MS + 45 * MINUTE_MS });
    await world.clock.advance(1_000);
    bad = recordNotFound;
    await world.clock.advance(60 * MINUTE_MS);
    expect(world.get('bad').status).toBe('expired');
    expect(world.turns).toEqual([]);
  });
});
