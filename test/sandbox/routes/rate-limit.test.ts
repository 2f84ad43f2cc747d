import { describe, expect, test } from 'vitest';
import { openSandbox } from '../open-sandbox.ts';

describe('over HTTP', () => {
  test('a lookup above the limit is refused with 429 and Retry-After', async () => {
    const sandbox = await openSandbox({ rateLimit: 2, rateLimitPerS: 60 });
    const id = await sandbox.submit();
    for (const _ of Array(2)) expect((await sandbox.lookUp(id)).status).toBe(200);
    sandbox.clock.ms += 20_500;
    const third = await sandbox.lookUp(id);
    expect(third.status).toBe(429);
    expect(third.headers.get('retry-after')).toBe('40');
    sandbox.clock.ms += 40_000;
    expect((await sandbox.lookUp(id)).status).toBe(200);
    expect(sandbox.stats()).toEqual({ requests: 4, throttled: 1, maxRequestsPerWindow: 3 });
  });
});
