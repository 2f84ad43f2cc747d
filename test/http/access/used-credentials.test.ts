import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { sha256 } from '../../../src/http/access/access.ts';
import { FailureBucket } from '../../../src/http/access/failure-bucket.ts';
import { UsedCredentials } from '../../../src/http/access/used-credentials.ts';

const hashes = Array.from({ length: 6 }, (_, n) => sha256(`credential ${n}`));
const hash = (n: number) => hashes[n] ?? expect.fail();

describe('used credentials', () => {
  it('are kept by address and credential until removed', () => {
    const used = new UsedCredentials(10);
    used.add('a', hash(0));
    expect([used.has('a', hash(0)), used.has('b', hash(0)), used.has('a', hash(1))]).toEqual([true, false, false]);
    used.remove('a', hash(0));
    expect(used.has('a', hash(0))).toBe(false);
  });

  it('use bounded memory: the pair unused for longest is evicted', () => {
    const used = new UsedCredentials(3);
    for (const n of [0, 1, 2]) used.add('a', hash(n));
    used.add('a', hash(0));
    used.add('another', hash(0));
    const left = hashes.map((one) => used.has('a', one));
    expect(left).toEqual([true, false, true, false, false, false]);
    expect(used.has('another', hash(0))).toBe(true);
  });
});

describe('failures', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('use bounded memory: the address that failed longest ago is evicted', () => {
    const failures = new FailureBucket({ max: 1, windowMs: 60_000, maxKeys: 3 });
    for (const address of ['a', 'b', 'c', 'd']) failures.begin(address)(true);
    expect(['a', 'b', 'c', 'd'].map((address) => failures.isClean(address))).toEqual([true, false, false, false]);
  });

  it('count an attempt once, however often it ends', () => {
    const failures = new FailureBucket({ max: 2, windowMs: 60_000, maxKeys: 3 });
    const leave = failures.begin('a');
    for (let times = 0; times < 3; times++) leave(true);
    expect(failures.retryAfterMs('a')).toBeUndefined();
    failures.begin('a')(true);
    vi.setSystemTime(Date.now() + 20_000);
    expect(failures.retryAfterMs('a')).toBe(40_000);
  });
});
