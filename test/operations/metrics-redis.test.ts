import { expect, it, onTestFinished, vi } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { openApp } from '../support/app/running-app.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

it.skipIf(isRedisMissing())(
  'with Redis, it and its workers are shown here and in /v1/overview',
  async () => {
    const redis = await redisForTest();
    const app = await openApp({ database: `${tempFolder()}/dawatch.db`, redisUrl: redis.url });
    onTestFinished(() => app.close());
    await vi.waitFor(
      async () => expect(reading((await scrape(app.url)).text, 'dawatch_redis_up')).toBe(1),
      10_000,
    );
    expect(reading((await scrape(app.url)).text, 'dawatch_workers')).toBe(0);
    expect(JSON.parse((await call(app.url, '/v1/overview')).text).workers).toBe(0);
  },
);
