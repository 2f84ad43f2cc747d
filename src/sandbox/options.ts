import { z } from 'zod';
import { finalityGapSchema, WORLD_NAMES, WORLDS, worldOptions } from './chain/worlds.ts';
import { nodeFaultFields } from './node/node-faults.ts';

const share = z.number().min(0).max(1);
const amount = z.number().min(0);

/**
 * Options of a sandbox. Durations are on the upstream's clock and divided by `speed`. Fields are
 * flat and primitive, because each becomes a flag of the command line.
 */
export const sandboxOptionFields = z.object({
  seed: z
    .int()
    .default(1)
    .describe('Seed of all random decisions; the same seed and submits reproduce the same run.'),
  speed: z
    .number()
    .positive()
    .default(1)
    .describe('Clock factor: 10 = ten times faster; divides every duration here.'),

  world: z
    .enum(WORLD_NAMES)
    .default('usual')
    .describe(
      'How the chain and the senders behave: calm, usual, rough, or ideal (a chain that ticks exactly).',
    ),
  slotS: z
    .number()
    .positive()
    .optional()
    .describe('Seconds of one slot; instead of the value of the world.'),
  finalityGap: finalityGapSchema
    .optional()
    .describe(
      'Blocks that must follow a block before a finality round finalizes it; instead of the value of the world.',
    ),

  senders: z
    .int()
    .min(0)
    .default(0)
    .describe('Strictly serial senders (count); 0 = everything is sent in parallel.'),
  timeoutS: z
    .number()
    .positive()
    .default(120)
    .describe('Seconds after which a sending attempt times out.'),

  rowDelayMs: amount
    .default(300)
    .describe('Mean milliseconds until the row of a fresh id exists (exponential).'),
  lostRate: share.default(0).describe('Share (0 to 1) of submissions whose row never appears.'),
  errorRate: share.default(0).describe('Chance (0 to 1) that one sending attempt fails.'),
  timeoutRate: share
    .default(0)
    .describe('Share (0 to 1) of failing attempts that end by the timeout.'),
  deadRate: share.default(0).describe('Share (0 to 1) of submissions that remain in Error.'),
  stragglerRate: share
    .default(0)
    .describe('Share (0 to 1) of submissions that are sent late, by 60 s on average.'),
  regressRate: share
    .default(0)
    .describe('Share (0 to 1) of submissions that change once more, 30 s after Finalized.'),

  latencyMs: amount.default(0).describe('Minimum latency of an HTTP response in milliseconds.'),
  latencyJitterMs: amount
    .default(0)
    .describe('Maximum random latency added, in milliseconds (uniform).'),
  rateLimit: z
    .int()
    .min(0)
    .default(0)
    .describe('Lookups allowed per window and API key (count); 0 = no limit.'),
  rateLimitPerS: z
    .number()
    .positive()
    .default(60)
    .describe('Seconds of the sliding rate-limit window.'),

  ...nodeFaultFields,

  apiKey: z.string().min(1).default('sandbox-key').describe('The accepted x-api-key.'),
});

/** The options with the values of the world, which tests and measurements override. */
export const sandboxOptionsSchema = z
  .object({ ...worldOptions, ...sandboxOptionFields.shape })
  .transform((given) => ({ ...given, ...withDefaults(given, WORLDS[given.world]) }));

export type SandboxOptions = z.output<typeof sandboxOptionsSchema>;
export type SandboxOptionsInput = z.input<typeof sandboxOptionsSchema>;

/** Returns the defaults overridden by the given options. Undefined values are treated as absent. */
function withDefaults<T extends object>(
  given: { [K in keyof T]?: T[K] | undefined },
  defaults: T,
): T {
  const entries = Object.entries(defaults).map(([name, value]) => [
    name,
    given[name as keyof T] ?? value,
  ]);
  return Object.fromEntries(entries) as T;
}
