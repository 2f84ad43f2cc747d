import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Budget } from '../../src/monitor/budget.ts';

const settings = (requests: number, perMs: number) => ({ requests, perMs, concurrency: 4 });

describe('a budget', () => {
  it('grants what is wanted, up to its requests, and then nothing until the oldest left the window', () => {
    const budget = new Budget(settings(3, 1_000));
    expect(budget.available(0, 2)).toBe(2);
    budget.spend(2, 0);
    expect(budget.available(400, 9)).toBe(1);
    budget.spend(1, 400);
    expect(budget.available(999, 9)).toBe(0);
    expect(budget.availableAt()).toBe(1_000);
    expect(budget.available(1_000, 9)).toBe(2);
    expect(budget.available(1_400, 9)).toBe(3);
  });

  it('is free at once when it is new', () => {
    expect(new Budget(settings(1, 1_000)).availableAt()).toBeLessThanOrEqual(0);
  });

  it('does not spend by being asked', () => {
    const budget = new Budget(settings(2, 1_000));
    for (let i = 0; i < 5; i++) expect(budget.available(0, 2)).toBe(2);
  });

  it('grants nothing where nothing is wanted', () => {
    const budget = new Budget(settings(2, 1_000));
    expect(budget.available(0, 0)).toBe(0);
    expect(budget.available(0, -1)).toBe(0);
  });

  it('exhausted, waits a whole window and is then whole again', () => {
    const budget = new Budget(settings(5, 1_000));
    budget.spend(2, 100);
    budget.exhaust(500);
    expect(budget.available(1_499, 5)).toBe(0);
    expect(budget.availableAt()).toBe(1_500);
    expect(budget.available(1_500, 9)).toBe(5);
  });

  it('names the concurrency it was given', () => {
    expect(new Budget(settings(5, 1_000)).concurrency).toBe(4);
  });
});

describe('any pattern of requests', () => {
  const pattern = fc.record({
    requests: fc.integer({ min: 1, max: 12 }),
    perMs: fc.integer({ min: 1, max: 1_000 }),
    calls: fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 400 }), wanted: fc.nat(20) }), {
      maxLength: 60,
      size: 'max',
    }),
  });

  it('has no window with more than the requests granted, nor is one withheld that would fit', () => {
    fc.assert(
      fc.property(pattern, ({ requests, perMs, calls }) => {
        const budget = new Budget(settings(requests, perMs));
        const sent: number[] = [];
        let now = 0;
        for (const { afterMs, wanted } of calls) {
          now += afterMs;
          const granted = budget.available(now, wanted);
          const inWindow = sent.filter((at) => at > now - perMs).length;
          expect(granted).toBe(Math.min(wanted, requests - inWindow));
          expect(budget.availableAt() <= now).toBe(inWindow < requests);
          budget.spend(granted, now);
          for (let i = 0; i < granted; i++) sent.push(now);
        }
        for (const from of sent)
          expect(sent.filter((at) => at >= from && at < from + perMs).length).toBeLessThanOrEqual(requests);
      }),
      { numRuns: 500 },
    );
  });

  it('is granted again exactly at the moment named, not before', () => {
    fc.assert(
      fc.property(pattern, ({ requests, perMs, calls }) => {
        const budget = new Budget(settings(requests, perMs));
        let now = 0;
        for (const { afterMs, wanted } of calls) {
          now += afterMs;
          budget.spend(budget.available(now, wanted), now);
          const at = budget.availableAt();
          if (at <= now) continue;
          expect(budget.available(at - 1, 1)).toBe(0);
          expect(budget.available(at, 1)).toBe(1);
        }
      }),
      { numRuns: 300 },
    );
  });
});
