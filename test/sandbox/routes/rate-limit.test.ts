import { describe, expect, test } from 'vitest';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../../src/sandbox/options.ts';
import { createRateLimit } from '../../../src/sandbox/routes/rate-limit.ts';
import { openSandbox } from '../open-sandbox.ts';

const limitWith = (options: SandboxOptionsInput) =>
  createRateLimit(sandboxOptionsSchema.parse(options));

describe('the limit', () => {
  test('accepts a request again exactly when the oldest one has left the window', () => {
    const limit = limitWith({ rateLimit: 2, rateLimitPerS: 60 });
    expect(limit.admit('key', 0)).toMatchObject({ admitted: true, remaining: 1 });
    expect(limit.admit('key', 10_000)).toMatchObject({ admitted: true, remaining: 0 });
    expect(limit.admit('key', 59_999)).toMatchObject({ admitted: false, retryAfterMs: 1 });
    expect(limit.admit('key', 60_000)).toMatchObject({ admitted: true });
    expect(limit.admit('key', 69_999)).toMatchObject({ admitted: false });
  });

  test('equals a count over every window', () => {
    const limit = limitWith({ rateLimit: 7, rateLimitPerS: 1 });
    // A fixed, uneven rhythm with bursts, long enough that old entries are removed.
    const arrivals = Array.from(
      { length: 6000 },
      (_, index) => index * 90 + ((index * index) % 13) * 60,
    ).toSorted((a, b) => a - b);
    for (const atMs of arrivals) limit.meter('key', atMs);
    const admitted = arrivals.filter((atMs) => limit.admit('key', atMs)?.admitted);
    const maxPerWindow = (times: readonly number[]) =>
      Math.max(
        ...times.map(
          (end, last) =>
            times.slice(Math.max(0, last - 50), last + 1).filter((at) => at > end - 1000).length,
        ),
      );
    expect(limit.maxPerWindow).toBe(maxPerWindow(arrivals));
    expect(maxPerWindow(admitted)).toBe(7);
  });
});

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
