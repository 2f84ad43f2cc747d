import type { SandboxOptions } from '../options.ts';
import { createSlidingWindow, type SlidingWindow } from './sliding-window.ts';

/** Where the window's length comes from when there is no limit and only the meter runs. */
const METER_WINDOW_MS = 1000;

export type Admission = { admitted: boolean; limit: number; remaining: number; retryAfterMs: number };

export type RateLimit = {
  /** Meters one request, whatever becomes of it. */
  meter(key: string, nowMs: number): void;
  /** Decides about one request; only admitted ones count against the limit. undefined: there is no limit. */
  admit(key: string, nowMs: number): Admission | undefined;
  readonly windowMs: number;
  /** The most requests of one key that ever arrived within one window. */
  readonly maxPerWindow: number;
};

/** A limit's window runs on the upstream's clock, so `speed` shortens it. */
export function createRateLimit(options: SandboxOptions): RateLimit {
  const limit = options.rateLimit;
  const windowMs = limit > 0 ? (options.rateLimitPerS * 1000) / options.speed : METER_WINDOW_MS;
  const arrived = new Map<string, SlidingWindow>();
  const admitted = new Map<string, SlidingWindow>();
  let maxPerWindow = 0;

  function windowOf(windows: Map<string, SlidingWindow>, key: string): SlidingWindow {
    const known = windows.get(key);
    if (known !== undefined) return known;
    const fresh = createSlidingWindow(windowMs);
    windows.set(key, fresh);
    return fresh;
  }

  return {
    meter(key, nowMs) {
      const window = windowOf(arrived, key);
      window.add(nowMs);
      maxPerWindow = Math.max(maxPerWindow, window.count(nowMs));
    },
    admit(key, nowMs) {
      if (limit === 0) return undefined;
      const window = windowOf(admitted, key);
      const used = window.count(nowMs);
      if (used >= limit) {
        return { admitted: false, limit, remaining: 0, retryAfterMs: window.untilOldestLeavesMs(nowMs) };
      }
      window.add(nowMs);
      return { admitted: true, limit, remaining: limit - used - 1, retryAfterMs: window.untilOldestLeavesMs(nowMs) };
    },
    windowMs,
    get maxPerWindow() {
      return maxPerWindow;
    },
  };
}

/**
 * The Retry-After header for a wait, undefined when this deployment sends none. Both forms have whole seconds only and
 * are rounded up: a client that waits as told must never come back too early.
 */
export function retryAfterOf(
  waitMs: number,
  nowMs: number,
  form: SandboxOptions['retryAfterForm'],
): string | undefined {
  switch (form) {
    case 'seconds':
      return String(Math.max(1, Math.ceil(waitMs / 1000)));
    case 'date':
      return new Date(Math.ceil((nowMs + waitMs) / 1000) * 1000).toUTCString();
    case 'none':
      return undefined;
    default:
      return form satisfies never;
  }
}
