import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import type { Clock } from '../../../src/lib/clock.ts';
import { createRandom } from './random.ts';

/** 2025-10-09, in epoch milliseconds. */
export const START_MS = 1_760_000_000_000;

const turn = setImmediate;
/**
 * Replaces the callback of a timer that has ended. Chains of ended timers would keep all that they
 * refer to until a full garbage collection.
 */
const nothing = () => {};
/**
 * Runs the callbacks of promises and of `process.nextTick` until none is left, as Node does after
 * each callback. A turn of the event loop for each timer took a quarter of the time.
 */
const { _tickCallback: runCallbacks } = process as unknown as { _tickCallback: () => void };

/** `at`: when it is due. `order`: breaks ties. `process`: null for a timer of the world. */
type Timer = { at: number; order: number; run: () => void; process: number | null };

/**
 * A machine whose time passes only in `advance`, and whose randomness comes from a seed. It
 * replaces the time, the timers and the randomness of the process that it is created in. At most
 * one simulated process runs on it. A killed one is never resumed: its timers do not fire, and what
 * it still does until its promises have settled has no effect, because disk and network ask
 * `isAlive`.
 */
export class Machine {
  /** Epoch milliseconds outside of the machine. */
  now = START_MS;
  /** By how much the wall clock of the machine is ahead. */
  aheadMs = 0;
  isAlive = false;
  #process = 0;
  #onStep = new Set<(stepMs: number, now: number) => void>();
  #order = 0;
  #immediates = 0;
  #starting = 0;
  /** The number of moments at which a process could be killed, until it is. */
  #killIn = Number.POSITIVE_INFINITY;
  /** In their order, the earliest last: it is taken first. */
  #timers: Timer[] = [];
  readonly #onKilled: (() => void)[] = [];

  constructor(seed: number) {
    const random = createRandom(seed, 'machine');
    Math.random = random.next;
    Object.assign(crypto, {
      randomBytes: (size: number) => random.bytes(size),
      randomUUID() {
        const hex = random.bytes(16).toString('hex');
        return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
      },
    });
    Date.now = () => this.wall();
    performance.now = () => this.now - START_MS;
    const timer = (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) => {
      const cancel = this.after(delayMs, () => run(...args));
      const handle = {
        cancel,
        ref: () => handle,
        unref: () => handle,
        hasRef: () => false,
        refresh: () => handle,
      };
      return handle;
    };
    const clear = (handle?: { cancel?: () => void }) => handle?.cancel?.();
    const immediate = (run: (...args: unknown[]) => void, ...args: unknown[]) => {
      this.#immediates += 1;
      return turn(() => {
        this.#immediates -= 1;
        run(...args);
      });
    };
    // Intervals only detect slow clients and late responses, which do not exist here.
    const interval = () => timer(() => undefined, Number.POSITIVE_INFINITY);
    const replaced = {
      setTimeout: timer,
      clearTimeout: clear,
      setInterval: interval,
      clearInterval: clear,
    };
    Object.assign(globalThis, replaced, { setImmediate: immediate });
    AbortSignal.timeout = (delayMs: number) => {
      const limit = new AbortController();
      timer(
        () =>
          limit.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
        delayMs,
      );
      return limit.signal;
    };
    const wait = (delayMs: number, value: unknown) =>
      new Promise((resolve) => timer(() => resolve(value), delayMs));
    Object.assign(timers, {
      setTimeout: wait,
      setImmediate: () => new Promise((resolve) => immediate(resolve)),
    });
    syncBuiltinESMExports();
  }

  /** The wall clock of the machine in epoch milliseconds. */
  wall(): number {
    return Math.floor(this.now + this.aheadMs);
  }

  /** The clock of the current process. */
  get clock(): Clock {
    return {
      now: () => this.wall(),
      elapsed: () => this.now,
      onStep: (listener) => {
        this.#onStep.add(listener);
        return () => this.#onStep.delete(listener);
      },
      after: (delayMs, run) => this.after(delayMs, run),
    };
  }

  /** A timer of the process: a kill cancels it. Returns a function that cancels it. */
  after(delayMs: number, run: () => void): () => void {
    return this.#add(delayMs, run, this.#process);
  }

  /** A timer of the world around the process. Returns a function that cancels it. */
  later(delayMs: number, run: () => void): () => void {
    return this.#add(delayMs, run, null);
  }

  #add(delayMs: number, run: () => void, process: number | null): () => void {
    const at = this.now + Math.max(0, delayMs);
    const timer = { at, order: this.#order++, run, process };
    if (at !== Number.POSITIVE_INFINITY) this.#timers.splice(this.#placeOf(timer), 0, timer);
    return () => {
      const place = this.#placeOf(timer);
      if (this.#timers[place] === timer) this.#timers.splice(place, 1);
      timer.run = nothing;
    };
  }

  /** Returns where a timer is in the list, or belongs. */
  #placeOf(timer: Timer): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (byTime(this.#timers[middle] as Timer, timer) < 0) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /**
   * Sets the wall clock forward, as SystemClock follows it: timers that are due by then fire at
   * once.
   */
  skip(ms: number): void {
    this.aheadMs += ms;
    for (const timer of this.#timers)
      if (timer.process !== null) timer.at = Math.max(this.now, timer.at - ms);
    this.#timers.sort(byTime);
    for (const listener of this.#onStep) listener(ms, this.wall());
  }

  /**
   * Starts a process, which must not wait for time to pass. No time passes until it has started.
   */
  boot(start: () => Promise<void>): void {
    this.isAlive = true;
    this.#onStep.clear();
    this.#killIn = Number.POSITIVE_INFINITY;
    this.wait(start());
  }

  /** No time passes until the promise resolves. A rejection ends the simulation. */
  wait(promise: Promise<void>): void {
    this.#starting += 1;
    void promise.then(() => {
      this.#starting -= 1;
    });
  }

  /** Called once at each kill. */
  onKilled(run: () => void): void {
    this.#onKilled.push(run);
  }

  /**
   * Kills the process after this number of the moments at which it reads or writes anything
   * outside.
   */
  killAfter(moments: number): void {
    this.#killIn = moments;
  }

  kill(): void {
    if (!this.isAlive) return;
    this.isAlive = false;
    for (const run of this.#onKilled) run();
  }

  /** Notes a moment at which the process may be killed. Returns whether it is alive afterwards. */
  survives(): boolean {
    if (this.isAlive && this.#killIn-- <= 0) this.kill();
    return this.isAlive;
  }

  /** Passes time: every timer fires at its time, and its effects settle before the next one. */
  async advance(untilMs: number): Promise<void> {
    await this.#settle();
    while (!(await this.#fireInTurn(untilMs))) await this.#settle();
    this.now = untilMs;
  }

  /**
   * Fires timers until the effects of one need another turn of the event loop. Resolves to whether
   * none is due any more.
   */
  #fireInTurn(untilMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      // Not in the callback of a promise, in which no other one could run. What is thrown is an
      // uncaught exception, as in any timer.
      turn(() => {
        let isOver = false;
        try {
          isOver = this.#fire(untilMs);
        } finally {
          resolve(isOver);
        }
      });
    });
  }

  #fire(untilMs: number): boolean {
    const next = () => this.#timers.at(-1);
    for (let timer = next(); timer && timer.at <= untilMs; timer = next()) {
      this.#timers.pop();
      this.now = Math.max(this.now, timer.at);
      const { run } = timer;
      timer.run = nothing;
      run();
      runCallbacks();
      if (this.#immediates > 0 || this.#starting > 0 || !this.isAlive) return false;
    }
    return true;
  }

  /**
   * Waits until everything has happened that requires no time, and forgets a process that was
   * killed meanwhile.
   */
  async #settle(): Promise<void> {
    do await new Promise((resolve) => turn(resolve));
    while (this.#immediates > 0 || this.#starting > 0);
    if (this.isAlive) return;
    this.#timers = this.#timers.filter(({ process }) => process !== this.#process);
    this.#process += 1;
  }
}

/** Orders timers, the latest first. */
function byTime(a: Timer, b: Timer): number {
  return b.at - a.at || b.order - a.order;
}
