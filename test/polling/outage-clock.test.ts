import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OutageClock } from '../../src/polling/outage-journal.ts';

/** A clock with this pause, as observed at 0. */
function paused(until: number): OutageClock {
  const clock = new OutageClock();
  clock.pauses(until, 0);
  return clock;
}

it('counts an outage during a pause once, and the rest of the pause after it', () => {
  const clock = paused(1_000);
  clock.outageBegins(400);
  expect(clock.pauses(1_000, 450), 'the pause is part of the outage').toBe(false);
  clock.outageEnds(600);
  expect(clock.pauses(1_000, 600)).toBe(true);
  expect([450, 600, 1_000, 2_000].map((now) => clock.totalMs(now))).toEqual([
    600, 600, 1_000, 1_000,
  ]);
});

it('continues from the stored totals; times in the future were written by a clock that was ahead', () => {
  const clock = new OutageClock();
  clock.restore({ outageMs: 7, outSince: null, pausedSince: 100, pausedUntil: 400 }, 200);
  expect([clock.totalMs(200), clock.totalMs(900)]).toEqual([107, 307]);
  const ahead = new OutageClock();
  ahead.restore({ outageMs: 7, outSince: 5_000, pausedSince: null, pausedUntil: null }, 200);
  expect([ahead.totalMs(200), ahead.totalMs(300)]).toEqual([7, 107]);
});

it('always equals the length of the union of all outages, pauses and sleeps, also over a restart at any moment', () => {
  const act = fc.record({
    afterMs: fc.nat(50),
    act: fc.constantFrom('pause', 'begin', 'end', 'restart', 'skip', 'look'),
    ms: fc.nat(120),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 40 }), (acts) => {
      let clock = new OutageClock();
      const blocked = new Set<number>();
      let [now, isOut, pausedUntil] = [0, false, 0];
      for (const { afterMs, act, ms } of acts) {
        for (let ended = now + afterMs; now < ended; now++)
          if (isOut || now < pausedUntil) blocked.add(now);
        if (act === 'skip') {
          for (let ended = now + ms; now < ended; now++) blocked.add(now);
          clock.skips(now - ms, now);
        }
        if (act === 'pause') pausedUntil = Math.max(pausedUntil, now + ms);
        if (act === 'begin') clock.outageBegins(now);
        if (act === 'end') clock.outageEnds(now);
        if (act === 'begin' || act === 'end') isOut = act === 'begin';
        clock.pauses(pausedUntil, now);
        if (act === 'restart') {
          const { outSince, record } = clock;
          clock = new OutageClock();
          clock.restore({ ...record, outSince }, now);
        }
        expect(clock.totalMs(now)).toBe(blocked.size);
      }
    }),
    { numRuns: 300 },
  );
});
