import type { Model } from './model.ts';
import type { SandboxOptions } from './options.ts';
import type { FaultContext } from './routes/fault-responses.ts';
import type { Faults } from './routes/faults.ts';
import type { RateLimit } from './routes/rate-limit.ts';
import type { Traffic } from './traffic.ts';
import type { Users } from './users.ts';

/** State shared by the routes of a running sandbox. */
export type SandboxContext = {
  options: SandboxOptions;
  model: Model;
  users: Users;
  traffic: Traffic;
  rateLimit: RateLimit;
  faults: Faults;
  /** Epoch milliseconds. */
  now: () => number;
  /** Waits for the duration set by the latency options. */
  delay: () => Promise<void>;
  faultContext: () => FaultContext;
};
