import { describe, expect, it } from 'vitest';
import { CircuitBreaker, type Health } from '../../src/polling/upstream-limits.ts';

const settings = { failures: 3, probeMs: 1_000, maxProbeMs: 10_000 };
/** No jitter: half of the range is a factor of one. */
const half = () => 0.5;

/** Observes a response for a submission, or for a control. */
function observe(breaker: CircuitBreaker, health: Health, at: number, isControl = false) {
  const submissionId = isControl ? 'control' : 'a';
  return breaker.observe({ submissionId, health, isControl }, at);
}

const control = (breaker: CircuitBreaker, health: Health, at: number) =>
  observe(breaker, health, at, true);

function opened(health: 'down' | 'unauthorized' = 'down', at = 0): CircuitBreaker {
  const breaker = new CircuitBreaker(settings, half);
  for (let i = 1; i < settings.failures; i++) observe(breaker, health, at);
  control(breaker, health, at);
  return breaker;
}

describe('a closed circuit breaker', () => {
  it('opens when a control fails after the given number of consecutive failures, and reports it once', () => {
    const breaker = new CircuitBreaker(settings, half);
    for (const at of [1, 2]) expect(observe(breaker, 'down', at)).toBeNull();
    expect(breaker.needsControl).toBe(false);
    expect(observe(breaker, 'down', 3)).toBeNull();
    expect(breaker).toMatchObject({ isOpen: false, needsControl: true });
    expect(control(breaker, 'down', 4)).toBe('down');
    expect(breaker).toMatchObject({ state: 'down', isOpen: true, openedAt: 4, probeAt: 1_004 });
    expect(control(breaker, 'down', 5)).toBeNull();
  });

  it('stays closed while only submissions fail, however often, and controls do not', () => {
    const breaker = new CircuitBreaker(settings, half);
    for (let at = 0; at < 100; at++) {
      expect(observe(breaker, 'unauthorized', at)).toBeNull();
      if (breaker.needsControl) expect(control(breaker, 'perhaps_up', at)).toBeNull();
    }
    expect(breaker).toMatchObject({ isOpen: false, openedAt: 0 });
  });

  it('needs one control at a time, and another one after a failure that follows it', () => {
    const breaker = new CircuitBreaker(settings, half);
    for (const at of [1, 2, 3]) observe(breaker, 'down', at);
    breaker.controlling();
    control(breaker, 'neutral', 4);
    expect(breaker.needsControl).toBe(false);
    observe(breaker, 'down', 5);
    expect(breaker.needsControl).toBe(true);
  });

  it('restarts the count after a good response, but not after a neutral one', () => {
    const breaker = new CircuitBreaker(settings, half);
    const healths: Health[] = ['down', 'down', 'up', 'down', 'neutral', 'down', 'neutral'];
    for (const health of healths) expect(observe(breaker, health, 0)).toBeNull();
    expect(control(breaker, 'down', 0)).toBe('down');
  });

  it('has the state of the control that opened it', () => {
    expect(opened('unauthorized').state).toBe('unauthorized');
    const breaker = new CircuitBreaker(settings, half);
    observe(breaker, 'unauthorized', 0);
    observe(breaker, 'unauthorized', 0);
    expect(control(breaker, 'down', 0)).toBe('down');
  });
});

describe('an open circuit breaker', () => {
  it('doubles the interval of its probes up to the maximum', () => {
    const breaker = opened();
    const distances = Array.from({ length: 6 }, () => {
      const now = breaker.probeAt;
      breaker.probing(now);
      observe(breaker, 'down', now + 5);
      return breaker.probeAt - now;
    });
    expect(distances).toEqual([2_000, 4_000, 8_000, 10_000, 10_000, 10_000]);
  });

  it('closes at the first good response, reports it once, and starts the next outage with short intervals', () => {
    const breaker = opened();
    for (let i = 0; i < 4; i++) breaker.probing(breaker.probeAt);
    expect(observe(breaker, 'up', 50_000)).toBe('up');
    expect(breaker).toMatchObject({ isOpen: false, probeAt: Number.POSITIVE_INFINITY });
    expect(observe(breaker, 'up', 50_001)).toBeNull();
    expect([1, 2, 3].map((i) => control(breaker, 'down', 60_000 + i))).toEqual([
      null,
      null,
      'down',
    ]);
    expect(breaker).toMatchObject({ openedAt: 60_003, probeAt: 61_003 });
  });

  it('probes at the maximum interval while credentials are refused', () => {
    const breaker = opened('unauthorized');
    expect(breaker.probeAt).toBe(10_000);
    breaker.probing(10_000);
    expect(breaker.probeAt).toBe(20_000);
  });

  it('reports a changed reason of its controls, and keeps the start of the outage', () => {
    const breaker = opened('down', 7);
    expect(observe(breaker, 'unauthorized', 400)).toBeNull();
    expect(control(breaker, 'unauthorized', 500)).toBe('unauthorized');
    expect(breaker).toMatchObject({ openedAt: 7, probeAt: 10_500 });
    expect(control(breaker, 'unauthorized', 600)).toBeNull();
    expect(control(breaker, 'down', 700)).toBe('down');
    expect(breaker.openedAt).toBe(7);
  });
});
