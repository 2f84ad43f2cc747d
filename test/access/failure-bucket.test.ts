import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FailureBucket } from '../../src/access/credential-lock.ts';

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
    expect(['a', 'b', 'c', 'd'].map((address) => failures.isClean(address))).toEqual([
      true,
      false,
      false,
      false,
    ]);
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
