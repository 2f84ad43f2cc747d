import type { Model } from './model.ts';
import type { SandboxOptions } from './options.ts';
import type { Faults } from './routes/faults.ts';
import type { RateLimit } from './routes/rate-limit.ts';
import type { Users } from './users.ts';

/** Numbers of requests, for demos, tests and benchmarks. Requests are lookups of submissions. */
export const NO_TRAFFIC = { requests: 0, throttled: 0, unauthorized: 0, redirectsFollowed: 0 };

/** State shared by the routes of a running sandbox. */
export type SandboxContext = {
  options: SandboxOptions;
  model: Model;
  users: Users;
  /** `requestsBySubmission`: by submission id, whatever the response. */
  traffic: typeof NO_TRAFFIC & { readonly requestsBySubmission: Map<string, number> };
  rateLimit: RateLimit;
  faults: Faults;
  /** Epoch milliseconds. */
  now: () => number;
  /** Calls a function after real milliseconds. Returns a function that cancels it. */
  after: (delayMs: number, run: () => void) => () => void;
  /** Waits for the duration set by the latency options. */
  delay: () => Promise<void>;
  /** Where the fault `redirect` leads. */
  redirectTo: () => string;
};
