import { describe, expect, it } from 'vitest';
import { LogDeduplication, type Suppressed } from '../../src/operations/logging/logger.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const MINUTE_MS = 60_000;

function open(perMinute = 3) {
  const clock = new HeldClock(MINUTE_MS);
  const reported: Suppressed[] = [];
  const deduplication = new LogDeduplication({
    perMinute,
    clock,
    onSuppressed: (suppressed) => reported.push(suppressed),
  });
  /** Returns how many of the lines are written. */
  const written = (count: number, fields = {}, level: 'warn' | 'error' = 'warn') =>
    Array.from({ length: count }, () =>
      deduplication.allows(level, 'delivery.failed', fields),
    ).filter(Boolean).length;
  return { clock, deduplication, reported, written, passMinute: () => clock.fire(MINUTE_MS) };
}

describe('with one event name', () => {
  it('limits the lines per minute, and reports the number of suppressed ones afterwards', () => {
    const { written, reported, passMinute } = open();
    expect(written(10)).toBe(3);
    expect(reported).toEqual([]);
    passMinute();
    expect(reported).toEqual([
      { level: 'warn', event: 'delivery.failed', subject: {}, suppressed: 7 },
    ]);
    expect(written(10)).toBe(3);
  });

  it('reports nothing for a minute without suppressed lines, and leaves no timer', () => {
    const { clock, written, reported, passMinute } = open();
    expect(written(3)).toBe(3);
    passMinute();
    expect([reported, clock.held(MINUTE_MS)]).toEqual([[], 0]);
  });

  it('limits lines of each upstream, destination, alert and level separately', () => {
    const { written, reported, passMinute } = open();
    const things = [
      {},
      { upstream: 'a' },
      { upstream: 'b' },
      { destination: 'a' },
      { rule: 'stuck', subject: 'a' },
    ];
    for (const about of things) expect(written(5, about)).toBe(3);
    expect(written(5, { upstream: 'a' }, 'error')).toBe(3);
    expect(written(1, { upstream: 'a', submission_id: 'another' })).toBe(0);
    passMinute();
    expect(reported.map(({ subject, suppressed }) => [subject, suppressed])).toEqual([
      [{}, 2],
      [{ upstream: 'a' }, 3],
      ...things.slice(2).map((about) => [about, 2]),
      [{ upstream: 'a' }, 2],
    ]);
  });

  it('lines about very many subjects share one limit', () => {
    const { deduplication, reported, passMinute } = open();
    const lines = Array.from({ length: 5_000 }, (_, at) =>
      deduplication.allows('warn', 'delivery.failed', { destination: at }),
    );
    expect(lines.filter(Boolean).length).toBe(1_003);
    passMinute();
    expect(reported).toEqual([
      { level: 'warn', event: 'delivery.failed', subject: {}, suppressed: 3_997 },
    ]);
  });

  it('writes all lines without a limit', () => {
    const { clock, written } = open(0);
    expect([written(100), clock.held(MINUTE_MS)]).toEqual([100, 0]);
  });
});

it('reports suppressed lines at shutdown, too, and only once', () => {
  const { clock, deduplication, written, reported } = open();
  written(5);
  deduplication.flush();
  deduplication.flush();
  expect([reported.length, clock.held(MINUTE_MS)]).toEqual([1, 0]);
});
