import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { type ClockSources, SystemClock, systemClock } from '../../src/lib/clock.ts';

const START = 1_760_000_000_000;
const HOUR = 3_600_000;

/**
 * A machine with its wall clock, its monotonic clock, and its timers, which use the monotonic one.
 */
function openMachine() {
  let wallMs = START;
  let monotonicMs = 5_000;
  const timers = new Set<{ at: number; run: () => void; background: boolean }>();
  const sources: ClockSources = {
    wall: () => wallMs,
    monotonic: () => monotonicMs,
    timer(delayMs, run, background) {
      const timer = { at: monotonicMs + delayMs, run, background };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const clock = new SystemClock(sources);
  const steps: [stepMs: number, now: number][] = [];
  clock.onStep((...step) => steps.push(step));
  return {
    clock,
    steps,
    timers,
    /** The machine is awake for the given time. With `checks` false, no background check runs. */
    async run(ms: number, { checks = true } = {}): Promise<void> {
      const until = monotonicMs + ms;
      for (;;) {
        const next = [...timers]
          .sort((a, b) => a.at - b.at)
          .find(({ at, background }) => at <= until && (checks || !background));
        const passedMs = (next?.at ?? until) - monotonicMs;
        monotonicMs += passedMs;
        wallMs += passedMs;
        if (!next) return;
        timers.delete(next);
        next.run();
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    /** The machine sleeps, or its clock is set: the monotonic clock does not change. */
    step(ms: number): void {
      wallMs += ms;
    },
    get wall() {
      return wallMs;
    },
  };
}

describe('after the machine slept, or its clock was set forward,', () => {
  it('the time is correct at once, listeners hear of the step, and it is in no duration', async () => {
    const { clock, steps, run, step } = openMachine();
    await run(10_000);
    step(8 * HOUR);
    expect(clock.now()).toBe(START + 10_000 + 8 * HOUR);
    expect(steps).toEqual([[8 * HOUR, clock.now()]]);
    await run(500);
    step(2 * HOUR);
    expect(clock.now()).toBe(START + 10_500 + 10 * HOUR);
    expect(steps[1]).toEqual([2 * HOUR, clock.now()]);
    expect(clock.elapsed()).toBe(5_000 + 10_500);
  });

  it('timers that are due by then fire within a second, and the others after their remaining time', async () => {
    const { clock, run, step } = openMachine();
    const fired: [string, number][] = [];
    const note = (name: string) => () => fired.push([name, clock.now() - START]);
    clock.after(30 * 60_000, note('in the sleep'));
    clock.after(HOUR + 60_000, note('after it'));
    clock.after(900, note('short'));
    await run(100);
    step(HOUR);
    await run(2_000);
    expect(fired.map(([name]) => name).sort()).toEqual(['in the sleep', 'short']);
    await run(57_000);
    expect(fired).toHaveLength(2);
    await run(2_000);
    expect(fired[2]).toEqual(['after it', expect.closeTo(HOUR + 60_000, -2)]);
    await run(10 * HOUR);
    expect(fired).toHaveLength(3);
  });
});

describe('after the clock was set back', () => {
  it('time continues slightly slower until the wall clock has caught up, and is correct from then on', async () => {
    const machine = openMachine();
    const { clock, steps, run, step } = machine;
    await run(1_000);
    step(-HOUR);
    const before = clock.now();
    await run(HOUR);
    expect(clock.now() - before).toBe((HOUR * 63) / 64);
    await run(63 * HOUR);
    expect(clock.now()).toBe(machine.wall);
    await run(HOUR);
    expect(clock.now()).toBe(machine.wall);
    expect(steps.map(([stepMs]) => stepMs)).toEqual([-HOUR]);
  });
});

it('a process that is suspended between two readings detects no step', () => {
  let wallMs = START;
  let monotonicMs = 0;
  const suspend = (ms: number) => {
    wallMs += ms;
    monotonicMs += ms;
  };
  let stopsAt = Number.NaN;
  let reads = 0;
  const read = (value: () => number) => {
    const found = value();
    if (reads++ === stopsAt) suspend(HOUR);
    return found;
  };
  const clock = new SystemClock({
    wall: () => read(() => wallMs),
    monotonic: () => read(() => monotonicMs),
    timer: () => () => undefined,
  });
  let steps = 0;
  clock.onStep(() => steps++);
  for (let at = 0; at < 3; at++) {
    reads = 0;
    stopsAt = at;
    clock.now();
    stopsAt = Number.NaN;
    expect([steps, clock.now()]).toEqual([0, wallMs]);
  }
});

it('never goes back, and is correct within twice the duration of all steps back, in any sequence', async () => {
  const act = fc.oneof(
    fc.record({ kind: fc.constant('run' as const), ms: fc.nat(100_000) }),
    fc.record({
      kind: fc.constant('step' as const),
      ms: fc.integer({ min: -200_000, max: 400_000 }),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
      const machine = openMachine();
      let last = machine.clock.now();
      let backMs = 0;
      for (const { kind, ms } of acts) {
        if (kind === 'run') await machine.run(ms);
        else machine.step(ms);
        if (kind === 'step' && ms < 0) backMs -= ms;
        const now = machine.clock.now();
        expect(now).toBeGreaterThanOrEqual(last);
        last = now;
      }
      await machine.run(64 * backMs + 1);
      expect(Math.abs(machine.clock.now() - machine.wall)).toBeLessThanOrEqual(1_000);
    }),
    { numRuns: 200 },
  );
});

it('waits for longer than setTimeout supports', async () => {
  const { clock, run } = openMachine();
  const fired = vi.fn();
  const days = 40 * 24 * HOUR;
  clock.after(days, fired);
  await run(days - 1, { checks: false });
  expect(fired).not.toHaveBeenCalled();
  await run(2, { checks: false });
  expect(fired).toHaveBeenCalledTimes(1);
});

it('the real clock uses the clocks and timers of the machine', async () => {
  const begin = systemClock.now();
  const order: string[] = [];
  await new Promise<void>((resolve) => {
    systemClock.after(1_100, () => {
      order.push('long');
      resolve();
    });
    systemClock.after(5, () => order.push('short'));
    const cancel = systemClock.after(1_050, () => order.push('cancelled'));
    systemClock.after(0, () => {
      order.push('at once');
      cancel();
    });
  });
  expect(order).toEqual(['at once', 'short', 'long']);
  expect(systemClock.now()).toBeGreaterThan(begin);
});
