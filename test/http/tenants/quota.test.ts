import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { problemOf } from '../../support/app/http-calls.ts';
import { openTenants, track } from '../../support/app/tenants.ts';

const tenants = { a: { max_open: 5 }, b: {} };
const ids = (count: number, prefix = 'id') => Array.from({ length: count }, (_, index) => `${prefix}-${index}`);

it('a request that would exceed the quota is refused as a whole, and says which and how many', async () => {
  const world = await openTenants({ tenants });
  const client = world.client('a', 'service');
  expect((await track(client, ...ids(3))).status).toBe(202);
  const refused = await track(client, ...ids(6));
  expect(problemOf(refused)).toMatchObject({
    status: 429,
    type: 'urn:dawatch:problem:quota-exceeded',
    detail:
      '3 of at most 5 submissions are open (max_open of the tenant), and the request would add 3; nothing was accepted',
  });
  expect(refused.headers['retry-after']).toBe('60');
  expect((await client.send('/v1/submissions/id-3')).status).toBe(404);
  expect((await track(client, ...ids(5))).status).toBe(202);
  // Nothing is added.
  expect((await track(client, ...ids(5))).status).toBe(202);
  expect((await track(client, 'one-more')).status).toBe(429);
  expect((await track(world.client('b', 'service'), ...ids(100))).status).toBe(202);
  expect((await track(world.client(null, 'service'), ...ids(100))).status).toBe(202);
});

it('a request that can never be accepted has no Retry-After', async () => {
  const world = await openTenants({ tenants });
  const refused = await track(world.client('a', 'service'), ...ids(6));
  expect([refused.status, refused.headers['retry-after']]).toEqual([429, undefined]);
});

it('a lookup that would track beyond the quota is refused, and one without tracking is not', async () => {
  const upstream = createServer((_request, response) => response.writeHead(404).end('{"error": "not found"}'));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void upstream.close());
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const world = await openTenants({ tenants, upstreamUrl });
  const client = world.client('a', 'service');
  await track(client, ...ids(5));
  const info = (more = '') => client.send(`/v1/get_submission_info?submission_id=one-more${more}`);
  expect(problemOf(await info('&track=true'))).toMatchObject({
    status: 429,
    type: 'urn:dawatch:problem:quota-exceeded',
  });
  expect((await info()).status).toBe(404);
  expect((await client.send('/v1/submissions/one-more')).status).toBe(404);
});

it('an id that occurs twice in a request counts once', async () => {
  const world = await openTenants({ tenants });
  const { status, text } = await track(world.client('a', 'service'), ...ids(5), ...ids(5));
  expect([status, JSON.parse(text).accepted]).toEqual([202, 5]);
});

it('an ended submission frees its place, and needs one to be tracked again', async () => {
  const world = await openTenants({ tenants });
  const client = world.client('a', 'service');
  await track(client, ...ids(5));
  await client.json('/v1/submissions/id-0', { method: 'DELETE' });
  expect((await track(client, 'another')).status).toBe(202);
  const again = { method: 'POST', body: { submission_id: 'id-0', retrack: true } };
  expect((await client.send('/v1/submissions', again)).status).toBe(429);
  await client.json('/v1/submissions/id-1', { method: 'DELETE' });
  expect((await client.send('/v1/submissions', again)).status).toBe(202);
});

it('requests at the same moment do not exceed it together', async () => {
  const world = await openTenants({ tenants: { a: { max_open: 50 } } });
  const client = world.client('a', 'service');
  const results = await Promise.all(ids(100).map((id) => track(client, id)));
  expect(results.filter(({ status }) => status === 202).length).toBe(50);
  expect(results.filter(({ status }) => status === 429).length).toBe(50);
});

it('it holds after a restart, also if it is lower than before', async () => {
  const world = await openTenants({ tenants });
  const client = world.client('a', 'service');
  await track(client, ...ids(5));
  await world.restart();
  expect((await track(client, 'one-more')).status).toBe(429);
  await world.restart({ tenants: { a: { max_open: 2 }, b: {} } });
  expect((await client.send('/v1/submissions/id-4')).status).toBe(200);
  expect((await track(client, 'one-more')).status).toBe(429);
  await world.restart({ tenants: { a: { max_open: 6 }, b: {} } });
  expect((await track(client, 'one-more')).status).toBe(202);
});

it('data is not forwarded beyond the quota, also while other data is being forwarded', async () => {
  let forwarded = 0;
  const upstream = createServer((request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(404).end('{}');
      return;
    }
    forwarded += 1;
    const body = JSON.stringify({ submission_id: `new-${forwarded}` });
    setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(body), 50);
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void upstream.close());
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const submit = { enabled: true, max_bytes: 1_000 };
  const world = await openTenants({ tenants: { a: { max_open: 3 } }, upstreamUrl, upstream: { submit } });
  const client = world.client('a', 'service');
  const send = () => client.send('/v1/submit_data', { method: 'POST', body: { data: 'x' } });
  const statuses = (await Promise.all(Array.from({ length: 8 }, send))).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([200, 200, 200, 429, 429, 429, 429, 429]);
  expect(forwarded).toBe(3);
  expect(problemOf(await send())).toMatchObject({ submitted: 'no' });
});

it('refusals are counted', async () => {
  const world = await openTenants({ tenants });
  await track(world.client('a', 'service'), ...ids(6));
  const { text } = await world.client(null).send('/metrics');
  expect(text).toContain('dawatch_quota_refusals_total{tenant="a"} 1');
});
