import { describe, expect, it } from 'vitest';
import { CircuitBreaker, type Health } from '../../src/polling/upstream-limits.ts';

const settings = { failures: 3, probeMs: 1_000, maxProbeMs: 10_000 };
/** No jitter: half of the range is a factor of one. */
const half = () => 0.5;

function opened(health: 'down' | 'unauthorized' = 'down', at = 0): CircuitBreaker {
  const breaker = new CircuitBreaker(settings, half);
  for (let i = 0; i < settings.failures; i++) breaker.observe(health, at);
  return breaker;
}

describe('a closed circuit breaker', () => {
  it('opens after the given number of consecutive failures, and reports it once', () => {
    const breaker = new CircuitBreaker(settings, half);
    expect([1, 2, 3, 4].map((at) => breaker.observe('down', at))).toEqual([
      null,
      null,
      'down',
      null,
    ]);
    expect(breaker).toMatchObject({ state: 'down', isOpen: true, openedAt: 3, probeAt: 1_003 });
  });

  it('restarts the count after a good response, but not after a neutral one', () => {
    const breaker = new CircuitBreaker(settings, half);
    const healths: Health[] = ['down', 'down', 'up', 'down', 'neutral', 'down', 'neutral'];
    for (const health of healths) expect(breaker.observe(health, 0)).toBeNull();
    expect(breaker.observe('down', 0)).toBe('down');
  });

  it('has the state of the failure that opened it', () => {
    expect(opened('unauthorized').state).toBe('unauthorized');
    const breaker = new CircuitBreaker(settings, half);
    breaker.observe('unauthorized', 0);
    breaker.observe('unauthorized', 0);
    expect(breaker.observe('down', 0)).toBe('down');
  });
});

describe('an open circuit breaker', () => {
  it('doubles the interval of its probes up to the maximum', () => {
    const breaker = opened();
    const distances = Array.from({ length: 6 }, () => {
      const now = breaker.probeAt;
      breaker.probing(now);
      breaker.observe('down', now + 5);
      return breaker.probeAt - now;
    });
    expect(distances).toEqual([2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
  });

  it('closes at the first good response, reports it once, and starts the next outage with short intervals', () => {
    const breaker = opened();
    for (let i = 0; i < 4; i++) breaker.probing(breaker.probeAt);
    expect(breaker.observe('up', 50_000)).toBe('up');
    expect(breaker).toMatchObject({ isOpen: false, probeAt: Number.POSITIVE_INFINITY });
    expect(breaker.observe('up', 50_001)).toBeNull();
    expect([1, 2, 3].map((i) => breaker.observe('down', 60_000 + i))).toEqual([null, null, 'down']);
    expect(breaker).toMatchObject({ openedAt: 60_003, probeAt: 61_003 });
  });

  it('probes at the maximum interval while credentials are refused', () => {
    const breaker = opened('unauthorized');
    expect(breaker.probeAt).toBe(10_000);
    breaker.probing(10_000);
    expect(breaker.probeAt).toBe(20_000);
  });

  it('reports a changed reason and keeps the start of the outage', () => {
    const breaker = opened('down', 7);
    expect(breaker.observe('unauthorized', 500)).toBe('unauthorized');
    expect(breaker).toMatchObject({ openedAt: 7, probeAt: 10_500 });
    expect(breaker.observe('unauthorized', 600)).toBeNull();
    expect(breaker.observe('down', 700)).toBe('down');
    expect(breaker.openedAt).toBe(7);
  });
});
