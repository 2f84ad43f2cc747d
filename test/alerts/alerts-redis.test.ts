import { expect, it } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { appForTest } from '../support/app/running-app.ts';
import { openWorker } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { eventually } from '../support/until.ts';

it.skipIf(isRedisMissing())(
  'the loss of Redis and of all workers are alerts, which end when they are back; metrics show both',
  async () => {
    const redis = await redisForTest();
    const app = await appForTest({
      redisUrl: redis.url,
      tuning: { redisDownMs: 100, noWorkersMs: 100 },
    });
    const get = async (path: string) => JSON.parse((await call(app.url, path)).text);
    const firing = async () =>
      (await get('/v1/alerts')).alerts.map(({ rule }: { rule: string }) => rule);
    const until = (rules: string[]) =>
      eventually(async () => expect(await firing()).toEqual(rules));
    const workers = async (count: number) =>
      eventually(async () => expect((await get('/v1/overview')).workers).toBe(count));

    // Redis without workers is no fault.
    await eventually(async () => expect((await get('/readyz')).status).toBe('ok'));
    await until([]);
    const worker = openWorker(redis);
    await workers(1);
    const { text } = await scrape(app.url);
    expect([reading(text, 'dawatch_redis_up'), reading(text, 'dawatch_workers')]).toEqual([1, 1]);
    expect(await firing()).toEqual([]);
    await worker.close();
    await until(['no_workers']);
    const next = openWorker(redis);
    await until([]);
    await redis.kill();
    await until(['redis_down']);
    expect(reading((await scrape(app.url)).text, 'dawatch_redis_up')).toBe(0);
    await redis.restart();
    await until([]);
    await next.close();
  },
);
