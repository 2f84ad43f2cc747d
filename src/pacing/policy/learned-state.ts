import { z } from 'zod';
import { AGE_CELLS } from './age-distribution.ts';
import { CLOCK_EVENTS } from './slot-clock.ts';
import { CELLS, DELAYS } from './slot-event.ts';
import { WAIT_COUNTS } from './slots-to-wait.ts';

const weights = (length: number) => z.array(z.number().min(0).max(1e9)).length(length);
const positive = (length: number) => weights(length).refine((cells) => cells.some((weight) => weight > 0));
const distribution = (length: number) =>
  weights(length).refine((cells) => Math.abs(cells.reduce((sum, p) => sum + p, 0) - 1) < 0.01);
const epochMs = z.number().min(-8.64e15).max(8.64e15);

/** The state that the policy stores across restarts. Anything else is ignored, and the policy learns from the beginning. */
const stateSchema = z.object({
  version: z.literal(4),
  ages: z.object({ weights: positive(AGE_CELLS), observed: z.int().min(0) }),
  clock: z
    .object({
      periodMs: z.number().min(100).max(3_600_000),
      originMs: epochMs,
      events: z.array(z.object({ after: epochMs, by: epochMs })).max(CLOCK_EVENTS),
    })
    .nullable(),
  slots: z
    .object({
      event: distribution(CELLS),
      delay: distribution(DELAYS),
      counts: weights(WAIT_COUNTS),
      empty: z.number().min(0).max(1),
    })
    .nullable(),
  senders: z.int().min(1).max(1_000).nullable(),
});

export type LearnedState = z.output<typeof stateSchema>;

/** Returns the state as JSON, with 5 significant digits, which exceeds the precision of the evidence. Times stay exact. */
export function writeState({ ages, slots, ...exact }: LearnedState): string {
  const roundedSlots = slots && {
    event: slots.event.map(rounded),
    delay: slots.delay.map(rounded),
    counts: slots.counts.map(rounded),
    empty: rounded(slots.empty),
  };
  const roundedAges = { weights: ages.weights.map(rounded), observed: rounded(ages.observed) };
  return JSON.stringify({ ...exact, ages: roundedAges, slots: roundedSlots });
}

function rounded(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(5));
}

/** Returns undefined for invalid text and for the state of another version. */
export function readState(text: string): LearnedState | undefined {
  try {
    return stateSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
