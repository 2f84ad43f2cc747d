import type { SandboxOptions } from '../options.ts';

/** Window of the request meter if there is no limit. */
const METER_WINDOW_MS = 1000;

export type RateLimit = ReturnType<typeof createRateLimit>;

/**
 * Returns the rate limit of the options. `speed` shortens its window, which is on the upstream's
 * clock.
 */
export function createRateLimit(options: SandboxOptions) {
  const limit = options.rateLimit;
  const windowMs = limit > 0 ? (options.rateLimitPerS * 1000) / options.speed : METER_WINDOW_MS;
  const metered = new Map<string, SlidingWindow>();
  const admitted = new Map<string, SlidingWindow>();
  let maxPerWindow = 0;

  function windowOf(windows: Map<string, SlidingWindow>, key: string): SlidingWindow {
    const existing = windows.get(key);
    if (existing !== undefined) return existing;
    const fresh = new SlidingWindow(windowMs);
    windows.set(key, fresh);
    return fresh;
  }

  return {
    /** Counts a request in the statistics, whether it is admitted or not. */
    meter(key: string, nowMs: number): void {
      const window = windowOf(metered, key);
      window.add(nowMs);
      maxPerWindow = Math.max(maxPerWindow, window.count(nowMs));
    },
    /**
     * Returns the milliseconds until a refused request is possible; undefined: it is admitted, and
     * counts against the limit.
     */
    refuses(key: string, nowMs: number): number | undefined {
      if (limit === 0) return undefined;
      const window = windowOf(admitted, key);
      if (window.count(nowMs) >= limit) return window.untilOldestLeavesMs(nowMs);
      window.add(nowMs);
      return undefined;
    },
    /** Maximum number of requests of one key within one window. */
    get maxPerWindow() {
      return maxPerWindow;
    },
  };
}

/**
 * Returns the Retry-After header for a delay: whole seconds, rounded up so that a compliant client
 * does not retry too early.
 */
export function retryAfterOf(waitMs: number): string {
  return String(Math.max(1, Math.ceil(waitMs / 1000)));
}

/** Counts the entries of the window (now - windowMs, now] exactly. */
class SlidingWindow {
  readonly #windowMs: number;
  #times: number[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  add(nowMs: number): void {
    this.#times.push(nowMs);
  }

  count(nowMs: number): number {
    while ((this.#times[0] ?? nowMs) <= nowMs - this.#windowMs) this.#times.shift();
    return this.#times.length;
  }

  /** Returns the milliseconds until the oldest entry leaves the window. */
  untilOldestLeavesMs(nowMs: number): number {
    return (this.#times[0] ?? nowMs) + this.#windowMs - nowMs;
  }
}
