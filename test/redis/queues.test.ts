import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { API_KEY, openApp, useApp } from '../support/app/running-app.ts';
import { signInWith } from '../support/app/sessions.ts';
import { holdSyncs } from '../support/ledger/held-syncs.ts';
import { openQueue } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../support/redis/redis-server.ts';

const ADMIN = 'an-admin-token-for-tests';
const basic = (password: string) => ({
  authorization: `Basic ${Buffer.from(`any:${password}`).toString('base64')}`,
});

describe.skipIf(isRedisMissing())('the page at /queues', () => {
  let redis: RedisServer;
  let url = '';
  let database = '';
  let end = async () => {};
  beforeAll(async () => {
    redis = await startRedis();
    const folder = mkdtempSync(join(tmpdir(), 'dawatch-queues-'));
    database = join(folder, 'ledger.db');
    const app = await openApp({ database, adminToken: ADMIN, redisUrl: redis.url });
    url = app.url;
    end = async () => {
      await app.close();
      await redis.close();
      rmSync(folder, { recursive: true });
    };
    await vi.waitFor(
      async () => expect((await call(url, '/readyz')).text).toContain('"up"'),
      10_000,
    );
  });
  afterAll(() => end());
  const get = (path: string, headers: Record<string, string>, method = 'GET') =>
    call(url, path, { method, headers: { 'x-api-key': [], ...headers } });

  it.each(['/queues', '/queues/', '/queues/api/queues', '/queues/static/js/main.f10757109b.js'])(
    '%s is for admins only, also with HTTP Basic',
    async (path) => {
      for (const headers of [{}, basic('wrong'), basic(''), { authorization: 'Basic x' }]) {
        const refused = await get(path, headers);
        expect(refused.status).toBe(401);
        expect(refused.headers['www-authenticate']).toBe('Basic realm="dawatch", charset="UTF-8"');
      }
      for (const headers of [basic(API_KEY), { 'x-api-key': API_KEY }])
        expect((await get(path, headers)).status).toBe(403);
      for (const headers of [
        basic(ADMIN),
        { authorization: `Bearer ${ADMIN}` },
        { 'x-api-key': ADMIN },
      ])
        expect((await get(path, headers)).status).not.toBe(401);
    },
  );

  it('the token as a password is accepted nowhere else', async () => {
    for (const path of ['/v1/webhooks', '/v1/submissions'])
      expect((await get(path, basic(ADMIN))).status).toBe(401);
  });

  it('shows the three queues, the one of polls read-only', async () => {
    const { text } = await get('/queues/api/queues', basic(ADMIN));
    const queues = JSON.parse(text).queues as { name: string; readOnlyMode: boolean }[];
    expect(queues.map(({ name, readOnlyMode }) => [name, readOnlyMode])).toEqual([
      ['dawatch-submissions', false],
      ['dawatch-events', false],
      ['dawatch-polls-3', true],
    ]);
  });

  it('runs its own scripts only, and cannot be framed', async () => {
    const { headers, text } = await get('/queues', basic(ADMIN));
    expect(text).toContain('<title>dawatch</title>');
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toContain("script-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy.join()).not.toMatch(/https?:|\*/);
    const scripts = [...text.matchAll(/<script[^>]*\ssrc="([^"]+)"/g)].map(([, src]) => src ?? '');
    expect(scripts.length).toBeGreaterThan(0);
    for (const src of scripts)
      expect((await get(`/queues/${src}`, basic(ADMIN))).status, src).toBe(200);
  });

  it('refuses requests from pages of other sites, and audits changes', async () => {
    const queue = openQueue(redis, 'dawatch-submissions');
    const path = '/queues/api/queues/dawatch-submissions/pause';
    for (const site of ['cross-site', 'same-site', 'none'])
      expect((await get(path, { ...basic(ADMIN), 'sec-fetch-site': site }, 'PUT')).status).toBe(
        403,
      );
    expect(await queue.isPaused()).toBe(false);
    expect(
      (await get(path, { ...basic(ADMIN), 'sec-fetch-site': 'same-origin' }, 'PUT')).status,
    ).toBe(200);
    expect(await queue.isPaused()).toBe(true);
    await queue.resume();
    const { entries } = JSON.parse(
      (await get('/v1/audit', { authorization: `Bearer ${ADMIN}` })).text,
    );
    expect(
      entries.filter(({ action }: { action: string }) => action === 'queues.change'),
    ).toMatchObject([
      {
        caller: 'DAWATCH_ADMIN_TOKEN',
        subject: 'dawatch-submissions',
        detail: 'PUT /queues/api/queues/:queueName/pause',
      },
    ]);
  });

  it('changes nothing in Redis before the audit entry of the change is on the disk', async () => {
    const queue = openQueue(redis, 'dawatch-submissions');
    const syncs = holdSyncs(database);
    const paused = get('/queues/api/queues/dawatch-submissions/pause', basic(ADMIN), 'PUT');
    await vi.waitUntil(() => syncs.isHolding());
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await queue.isPaused()).toBe(false);
    syncs.release();
    expect((await paused).status).toBe(200);
    expect(await queue.isPaused()).toBe(true);
    await queue.resume();
  });

  it('accepts the session of an admin, from its own pages and from the address bar', async () => {
    const { cookie } = await signInWith(url, ADMIN);
    const from = (site: string, path: string, method = 'GET') =>
      get(path, { cookie, 'sec-fetch-site': site }, method).then(({ status }) => status);
    for (const site of ['same-origin', 'none']) expect(await from(site, '/queues')).toBe(200);
    expect(await from('same-origin', '/queues/api/queues')).toBe(200);
    const pause = '/queues/api/queues/dawatch-submissions/pause';
    const resume = pause.replace('pause', 'resume');
    expect([
      await from('same-origin', pause, 'PUT'),
      await from('same-origin', resume, 'PUT'),
    ]).toEqual([200, 200]);
    for (const site of ['same-site', 'cross-site']) {
      expect(await from(site, '/queues')).toBe(401);
      expect(await from(site, pause, 'PUT')).toBe(401);
    }
    expect(await from('none', pause, 'PUT')).toBe(401);
    expect((await get(pause, { cookie }, 'PUT')).status, 'no proof of the origin').toBe(401);
    expect((await get(pause, { cookie, origin: 'https://evil.example' }, 'PUT')).status).toBe(401);
    expect((await get(resume, { cookie, origin: url }, 'PUT')).status).toBe(200);
    const service = await signInWith(url, API_KEY);
    expect(
      (await get('/queues', { cookie: service.cookie, 'sec-fetch-site': 'same-origin' })).status,
    ).toBe(403);
  });

  it('responds 503 while Redis is unreachable', async () => {
    await redis.kill();
    await vi.waitFor(
      async () => expect((await call(url, '/readyz')).text).toContain('"disconnected"'),
      10_000,
    );
    const response = await get('/queues/api/queues', basic(ADMIN));
    expect(response.status).toBe(503);
    expect(response.text).toContain('Redis is disconnected');
  });
});

describe('without Redis', () => {
  const app = useApp();
  it('there is no such page', async () => {
    expect((await call(app.url, '/queues')).status).toBe(404);
  });
});
