import type { Model } from './model.ts';
import type { SandboxOptions } from './options.ts';
import type { FaultContext } from './routes/fault-responses.ts';
import type { Faults } from './routes/faults.ts';
import type { RateLimit } from './routes/rate-limit.ts';
import type { Traffic } from './traffic.ts';
import type { Users } from './users.ts';

/** What the routes of one running sandbox share. */
export type SandboxContext = {
  options: SandboxOptions;
  model: Model;
  users: Users;
  traffic: Traffic;
  rateLimit: RateLimit;
  faults: Faults;
  /** Epoch milliseconds. */
  now: () => number;
  /** Waits as long as an answer takes by the latency options. */
  delay: () => Promise<void>;
  faultContext: () => FaultContext;
};
