import { performance } from 'node:perf_hooks';

/** The time in epoch milliseconds, which never goes back within a process, and timers. */
export type Clock = {
  now(): number;
  /** Milliseconds since an arbitrary moment, for durations: steps of the clock do not change it. */
  elapsed(): number;
  /**
   * Calls `listener` when the clock has been set, before `now` returns the new time. `stepMs`:
   * negative if it was set back. Returns a function that ends this. Absent: it is never set.
   */
  onStep?(listener: StepListener): () => void;
  /** 0: after the current turn of the event loop. Returns a function that cancels it. */
  after(delayMs: number, run: () => void): () => void;
};

type StepListener = (stepMs: number, now: number) => void;

export type ClockSources = {
  /** The machine's wall clock, epoch milliseconds. It can be set in either direction. */
  wall(): number;
  /** Milliseconds since an arbitrary moment. Never goes back; stops while the machine sleeps. */
  monotonic(): number;
  /** `background`: does not keep the process alive. Returns a function that cancels it. */
  timer(delayMs: number, run: () => void, background: boolean): () => void;
};

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^(\d+(?:\.\d+)?)(ms|[smhd])$/;
const ISO_DURATION =
  /^P(?=\d|T\d)(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;

/** Returns "250ms", "90s", "10m", "24h", "7d" or "PT10M" in milliseconds, else undefined. */
export function durationMs(text: string): number | undefined {
  const [, amount, unit] = DURATION.exec(text) ?? [];
  if (amount !== undefined) return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  const match = ISO_DURATION.exec(text);
  if (!match) return undefined;
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = match.map((part) => Number(part ?? 0));
  return ((days * 24 + hours) * 60 + minutes) * UNIT_MS.m + seconds * UNIT_MS.s;
}

const MAX_TIMER_MS = 2 ** 31 - 1;
/** Two clocks are never read at exactly the same moment, so smaller steps are ignored. */
const STEP_MS = 1_000;
/** Interval of comparisons with the wall clock while a longer timer waits. */
const CHECK_MS = 1_000;
/** Rate of the clock while it waits for a wall clock that was set back. */
const SLOW_RATE = 63 / 64;

type Timer = { dueAt: number; run: () => void; cancel: () => void };

/**
 * Epoch milliseconds that never go back within a process: the wall clock at its start, continued by
 * the monotonic clock, and compared with the wall clock whenever it is read.
 *
 *     forward   The wall clock is more than a second ahead: the machine slept, a virtual machine
 *               was paused, or the clock was set. The clock follows at once. Timers that are due by
 *               then fire within a second; the others wait for the rest of their time.
 *     back      The wall clock is more than a second behind. The clock runs slower by 1/64 until
 *               the wall clock has caught up: it is right again after 64 times the step, and
 *               durations are right to 2 % until then, never negative. Timers take as long as ever.
 *               A clock that was set back by hours is right at once after a restart.
 *
 * Steps of up to a second are ignored.
 */
export class SystemClock implements Clock {
  readonly #sources: ClockSources;
  #origin: number;
  #readAt: number;
  /** How far the wall clock, which was set back, is behind this one. */
  #behindMs = 0;
  readonly #stepListeners = new Set<StepListener>();
  readonly #timers = new Set<Timer>();
  #cancelCheck: (() => void) | undefined;

  constructor(sources: ClockSources) {
    this.#sources = sources;
    this.#readAt = sources.monotonic();
    this.#origin = sources.wall() - this.#readAt;
  }

  now(): number {
    return Math.floor(this.#read());
  }

  elapsed(): number {
    return this.#sources.monotonic();
  }

  onStep(listener: StepListener): () => void {
    this.#stepListeners.add(listener);
    return () => this.#stepListeners.delete(listener);
  }

  after(delayMs: number, run: () => void): () => void {
    if (delayMs <= 0) {
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    }
    if (delayMs <= CHECK_MS) return this.#sources.timer(Math.ceil(delayMs), run, false);
    const timer: Timer = { dueAt: this.#read() + delayMs, run, cancel: () => undefined };
    this.#timers.add(timer);
    this.#arm(timer, delayMs);
    this.#check();
    return () => this.#remove(timer);
  }

  #read(): number {
    const { wall, monotonic } = this.#sources;
    // The process may be suspended between two readings, which must not look like a step.
    const before = monotonic();
    const wallNow = wall();
    const after = monotonic();
    const elapsedMs = after - this.#readAt;
    this.#readAt = after;
    const aheadMs = wallNow - (this.#origin + after);
    const behindMs = this.#origin + before - wallNow;
    if (aheadMs > STEP_MS) {
      this.#origin += aheadMs;
      this.#behindMs = 0;
      setImmediate(() => this.#rearm());
      this.#stepped(aheadMs);
    } else if (this.#behindMs > 0 || behindMs > STEP_MS) {
      const setBackMs = behindMs - this.#behindMs;
      const correctionMs = Math.min(Math.max(0, behindMs), elapsedMs * (1 - SLOW_RATE));
      this.#origin -= correctionMs;
      this.#behindMs = Math.max(0, behindMs - correctionMs);
      if (setBackMs > STEP_MS) this.#stepped(-setBackMs);
    }
    return this.#origin + after;
  }

  /** In whole milliseconds, as the ledger stores times. */
  #stepped(ms: number): void {
    const now = Math.floor(this.#origin + this.#readAt);
    for (const listener of this.#stepListeners) listener(Math.round(ms), now);
  }

  #arm(timer: Timer, delayMs: number): void {
    const partMs = Math.min(Math.ceil(delayMs), MAX_TIMER_MS);
    const onEnd = () => {
      if (delayMs > partMs) return this.#arm(timer, delayMs - partMs);
      this.#remove(timer);
      timer.run();
    };
    timer.cancel = this.#sources.timer(partMs, onEnd, false);
  }

  #remove(timer: Timer): void {
    timer.cancel();
    this.#timers.delete(timer);
    if (this.#timers.size > 0) return;
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
  }

  /** Reads the clock periodically, so that a step is noticed if nothing else reads it. */
  #check(): void {
    this.#cancelCheck ??= this.#sources.timer(
      CHECK_MS,
      () => {
        this.#cancelCheck = undefined;
        this.#read();
        if (this.#timers.size > 0) this.#check();
      },
      true,
    );
  }

  #rearm(): void {
    const now = this.#read();
    for (const timer of [...this.#timers]) {
      timer.cancel();
      this.#arm(timer, Math.max(1, timer.dueAt - now));
    }
  }
}

/** The clocks and timers of the machine. */
export const MACHINE: ClockSources = {
  // Read once, so that a test that fakes `Date` does not change this clock.
  wall: Date.now,
  monotonic: () => performance.now(),
  timer(delayMs, run, background) {
    const timer = setTimeout(run, delayMs);
    if (background) timer.unref();
    return () => clearTimeout(timer);
  },
};

export const systemClock = new SystemClock(MACHINE);

/** Formats epoch milliseconds as ISO 8601 in UTC. Throws RangeError. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

/** Waits for `work` up to `limitMs`. A rejection counts as done. */
export async function withTimeout(
  limitMs: number,
  work: PromiseLike<unknown>,
): Promise<'done' | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs);
  });
  try {
    return await Promise.race([
      work.then(
        () => 'done' as const,
        () => 'done' as const,
      ),
      limit,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
