import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { EVENTS_QUEUE, POLLS_QUEUE } from '../../src/redis/connections.ts';
import { startWorker } from '../../src/redis/worker.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { openApp } from '../support/app/running-app.ts';
import { openQueue, openRedisClient } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';
import { eventually, until } from '../support/until.ts';

const PASSWORD = 'redis-S3cret';
const KEY = 'sandbox-key';

type Setting = {
  sandbox?: SandboxOptionsInput;
  budget?: { requests: number; per_s: number; concurrency: number };
};

/** A server with Redis and the sandbox, closed when the test ends. */
async function openWorld({ sandbox: options = { speed: 200 }, budget }: Setting = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-scaling-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const redis = await redisForTest({ password: PASSWORD });
  const sandbox = await startSandbox({ options });
  onTestFinished(() => sandbox.close());
  const logged: string[] = [];
  const open = async () => {
    const app = await openApp({
      database: join(folder, 'ledger.db'),
      upstreamUrl: sandbox.url,
      redisUrl: redis.url,
      adminToken: ADMIN_TOKEN,
      upstream: budget ? { budget } : {},
      onLog: (line) => logged.push(line),
    });
    onTestFinished(() => app.close());
    return app;
  };
  const submit = (count: number) =>
    Array.from({ length: count }, () => sandbox.model.submit('data', Date.now()));
  return { redis, sandbox, open, submit, logged };
}

/** Runs `dawatch worker` within this process. */
function openWorker(redis: RedisServer, upstreamUrl: string, name: string) {
  const env = {
    DAWATCH_REDIS_URL: redis.url,
    DAWATCH_UPSTREAM_URL: upstreamUrl,
    DAWATCH_UPSTREAM_API_KEY: KEY,
  };
  const { config } = loadConfig({ env, file: null });
  const log = pino({ level: 'silent' });
  const worker = startWorker({ config, log, clock: systemClock, version: '0.0.0-test', name });
  onTestFinished(() => worker.close());
  return worker;
}

type Readiness = {
  status: string;
  redis: { state: string; workers: string[] };
};
const readiness = async (url: string): Promise<Readiness> =>
  JSON.parse(
    (await call(url, '/readyz', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).text,
  );
const ready = (url: string, expected: object) =>
  eventually(async () => expect(await readiness(url)).toMatchObject(expected));
const statusOf = async (url: string, id: string): Promise<string> =>
  JSON.parse((await call(url, `/v1/submissions/${id}`)).text).status;
const final = (url: string, ids: string[]) =>
  eventually(async () => {
    for (const id of ids) expect(await statusOf(url, id)).toBe('finalized');
  });

describe.skipIf(isRedisMissing())('a server with Redis', () => {
  it('keeps the budget with three workers, as counted by the upstream; the workers poll with their own keys', async () => {
    const limit = 40;
    const { redis, sandbox, open, submit } = await openWorld({
      sandbox: { speed: 40, rateLimit: limit, rateLimitPerS: 8 },
      budget: { requests: limit, per_s: 0.2, concurrency: 64 },
    });
    const app = await open();
    const workers = ['one', 'two', 'three'];
    for (const name of workers) openWorker(redis, sandbox.url, name);
    await ready(app.url, { redis: { workers: workers.toSorted() } });
    // Only admins can read the names of hosts.
    expect(JSON.parse((await call(app.url, '/readyz')).text).redis).toEqual({
      state: 'up',
      paused: [],
    });
    const ids = submit(200);
    await post(app.url, { submission_ids: ids });
    await final(app.url, ids);
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(limit);
    const jobs = await openQueue(redis, POLLS_QUEUE).getJobs(['completed']);
    const workedFor = new Set(jobs.map(({ processedBy }) => processedBy));
    expect(workers).toEqual(expect.arrayContaining([...workedFor]));
    // Redis contains no key of the upstream.
    const redisClient = openRedisClient(redis);
    for (const key of await redisClient.keys('*'))
      if ((await redisClient.type(key)) === 'hash')
        expect(JSON.stringify(await redisClient.hgetall(key))).not.toContain(KEY);
  });

  it('pauses all workers after a 429 to one of them', async () => {
    const { redis, sandbox, open, submit } = await openWorld();
    const app = await open();
    for (const name of ['one', 'two']) openWorker(redis, sandbox.url, name);
    await ready(app.url, { redis: { workers: ['one', 'two'] } });
    sandbox.injectFault({ kind: 'throttle', retryAfterS: 3_600, count: 1 });
    const ids = submit(1);
    await post(app.url, { submission_ids: ids });
    await until(() => sandbox.stats().throttled === 1);
    // From here on the server knows about the pause.
    const queue = openQueue(redis);
    await expect.poll(async () => (await queue.getJobCounts()).completed).toBeGreaterThan(0);
    await post(app.url, { submission_ids: submit(50) });
    await post(app.url, { submission_id: 'polled-after-them', upstream: 'other' });
    const polls = async (upstream: string) =>
      (await queue.getJobs()).filter((job) => job?.data.upstream === upstream);
    await until(async () => (await polls('other')).length > 0);
    expect(await polls('default')).toHaveLength(1);
  });

  it('is degraded while Redis is unreachable, still tracks, and recovers afterwards', async () => {
    const { redis, open, submit, logged } = await openWorld();
    await redis.kill();
    const app = await open();
    await ready(app.url, {
      status: 'degraded',
      redis: { state: 'disconnected', workers: [] },
    });
    const ids = submit(3);
    expect((await post(app.url, { submission_ids: ids })).status).toBe(202);
    await final(app.url, ids);
    await redis.restart();
    await ready(app.url, { status: 'ok', redis: { state: 'up' } });
    await eventually(async () =>
      expect(await openQueue(redis, EVENTS_QUEUE).getWaitingCount()).toBe(3),
    );
    expect(logged.join()).toContain('redis.disconnected');
    expect(logged.join()).toContain('redis.connected');
    expect(logged.join()).not.toContain(PASSWORD);
  });
});
