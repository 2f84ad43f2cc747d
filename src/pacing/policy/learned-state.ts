import { z } from 'zod';
import { AGE_CELLS } from './age-distribution.ts';
import { CELLS, DELAYS } from './slot-belief.ts';
import { MEMORY } from './slot-clock.ts';
import { COUNTS } from './slot-distribution.ts';

const weight = z.number().min(0).max(1e9);
const time = z.number().min(-8.64e15).max(8.64e15);

/** What the policy keeps over a restart. Whatever else a ledger holds here is learned anew. */
const stateSchema = z.object({
  version: z.literal(3),
  ages: z.object({ weights: z.array(weight).length(AGE_CELLS), observed: z.int().min(0) }),
  clock: z
    .object({
      periodMs: z.number().min(100).max(3_600_000),
      originMs: time,
      events: z.array(z.object({ after: time, by: time })).max(MEMORY),
    })
    .nullable(),
  slots: z.object({
    event: z.array(weight).length(CELLS),
    delay: z.array(weight).length(DELAYS),
    counts: z.array(weight).length(COUNTS),
    empty: z.array(z.number().min(0).max(1)).min(1).max(20),
  }),
  senders: z.int().min(1).max(1_000).nullable(),
  alreadyFinal: z.number().min(0).max(1),
});

export type LearnedState = z.output<typeof stateSchema>;

const EXACT = ['periodMs', 'originMs', 'after', 'by'];

/** Five digits are more than the evidence has. */
export function writeState(state: LearnedState): string {
  return JSON.stringify(state, (key, value: unknown) =>
    typeof value === 'number' && !EXACT.includes(key) ? Number(value.toPrecision(5)) : value,
  );
}

/** Undefined for what another version wrote. */
export function readState(text: string): LearnedState | undefined {
  try {
    return stateSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
