import type { Model } from './model.ts';
import type { SandboxOptions } from './options.ts';
import type { Faults } from './routes/faults.ts';
import type { RateLimit } from './routes/rate-limit.ts';
import type { Users } from './users.ts';

/** State shared by the routes of a running sandbox. */
export type SandboxContext = {
  options: SandboxOptions;
  model: Model;
  users: Users;
  /** Numbers of lookups of submissions, and of those refused with 429. */
  traffic: { requests: number; throttled: number };
  rateLimit: RateLimit;
  faults: Faults;
  /** Epoch milliseconds. */
  now: () => number;
  /** Calls a function after real milliseconds. Returns a function that cancels it. */
  after: (delayMs: number, run: () => void) => () => void;
  /** Waits for the duration set by the latency options. */
  delay: () => Promise<void>;
};
