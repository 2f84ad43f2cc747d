import { describe, expect, test } from 'vitest';
import { type SandboxOptionsInput, sandboxOptionsSchema } from '../../../src/sandbox/options.ts';
import { createRateLimit, retryAfterOf } from '../../../src/sandbox/routes/rate-limit.ts';
import { openSandbox, START_MS } from '../open-sandbox.ts';

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

  test('counts each key separately', () => {
    const limit = limitWith({ rateLimit: 1 });
    expect(limit.admit('one', 0)?.admitted).toBe(true);
    expect(limit.admit('other', 0)?.admitted).toBe(true);
    expect(limit.admit('one', 0)?.admitted).toBe(false);
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

  test('uses the clock of the upstream', () => {
    expect(limitWith({ rateLimit: 15, rateLimitPerS: 60, speed: 10 }).windowMs).toBe(6000);
    expect(limitWith({ rateLimit: 0, rateLimitPerS: 60, speed: 10 }).windowMs).toBe(1000);
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

  test('the delay can be an HTTP date, or omitted', async () => {
    const dated = await openSandbox({ rateLimit: 1, retryAfterForm: 'date' });
    const silent = await openSandbox({ rateLimit: 1, retryAfterForm: 'none' });
    const id = await dated.submit();
    await dated.lookUp(id);
    await silent.lookUp(id);
    expect((await dated.lookUp(id)).headers.get('retry-after')).toBe(
      new Date(START_MS + 60_000).toUTCString(),
    );
    expect((await silent.lookUp(id)).headers.get('retry-after')).toBeNull();
  });

  test('a lookup with a wrong key does not count towards the limit', async () => {
    const sandbox = await openSandbox({ rateLimit: 1 });
    const id = await sandbox.submit();
    await sandbox.lookUp(id, { 'x-api-key': 'other' });
    expect((await sandbox.lookUp(id)).status).toBe(200);
  });

  test('without a limit, responses have no rate-limit headers', async () => {
    const sandbox = await openSandbox();
    const response = await sandbox.lookUp(await sandbox.submit());
    expect(response.headers.get('x-ratelimit-limit')).toBeNull();
  });
});

test('a delay is never rounded down', () => {
  expect(retryAfterOf(1, START_MS, 'seconds')).toBe('1');
  expect(retryAfterOf(1001, START_MS, 'seconds')).toBe('2');
  expect(retryAfterOf(1, START_MS, 'date')).toBe(new Date(START_MS + 1000).toUTCString());
});
