import type { SandboxOptions } from '../options.ts';

/** Window of the request meter if there is no limit. */
const METER_WINDOW_MS = 1000;

export type Admission = {
  admitted: boolean;
  limit: number;
  remaining: number;
  retryAfterMs: number;
};

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
    windowMs,
    /** Counts a request in the statistics, whether it is admitted or not. */
    meter(key: string, nowMs: number): void {
      const window = windowOf(metered, key);
      window.add(nowMs);
      maxPerWindow = Math.max(maxPerWindow, window.count(nowMs));
    },
    /**
     * Admits or refuses a request. Only admitted requests count against the limit. Returns
     * undefined without a limit.
     */
    admit(key: string, nowMs: number): Admission | undefined {
      if (limit === 0) return undefined;
      const window = windowOf(admitted, key);
      const used = window.count(nowMs);
      if (used >= limit) {
        return {
          admitted: false,
          limit,
          remaining: 0,
          retryAfterMs: window.untilOldestLeavesMs(nowMs),
        };
      }
      window.add(nowMs);
      return {
        admitted: true,
        limit,
        remaining: limit - used - 1,
        retryAfterMs: window.untilOldestLeavesMs(nowMs),
      };
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

  /**
   * Returns the milliseconds until the oldest entry leaves the window, or 0 if the window is empty.
   */
  untilOldestLeavesMs(nowMs: number): number {
    return this.count(nowMs) === 0 ? 0 : (this.#times[0] ?? 0) + this.#windowMs - nowMs;
  }
}
