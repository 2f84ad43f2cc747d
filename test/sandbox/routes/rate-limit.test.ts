import { describe, expect, test } from 'vitest';
import { openSandbox } from '../open-sandbox.ts';

describe('over HTTP', () => {
  test('a lookup above the limit is refused with 429, and every response has the rate-limit headers', async () => {
    const sandbox = await openSandbox({ rateLimit: 2, rateLimitPerS: 60 });
    const id = await sandbox.submit();
    const first = await sandbox.lookUp(id);
    expect(first.headers.get('x-ratelimit-limit')).toBe('2');
    expect(first.headers.get('x-ratelimit-remaining')).toBe('1');
    await sandbox.lookUp(id);
    sandbox.clock.ms += 20_500;
    const third = await sandbox.lookUp(id);
    expect(third.status).toBe(429);
    expect(third.headers.get('retry-after')).toBe('40');
    expect(third.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(third.headers.get('x-ratelimit-reset')).toBe('40');
    sandbox.clock.ms += 40_000;
    expect((await sandbox.lookUp(id)).status).toBe(200);
    expect(sandbox.stats()).toMatchObject({
      requests: 4,
      throttled: 1,
      maxRequestsPerWindow: 3,
      windowMs: 60_000,
    });
  });
});
