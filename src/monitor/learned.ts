import { z } from 'zod';
import type { Groups } from './cohort-sweep.ts';
import type { Tick } from './finality-clock.ts';

/** What is learned about an upstream, to go on with after a restart. */
export type Learned = { ticks: readonly Tick[]; enough: number; groups: Groups; disorder: number };

const VERSION = 1;

/** A month: nothing that takes longer is waited for by a clock. */
const MAX_AGE_MS = 30 * 86_400_000;
const time = z.number().min(0).max(8.64e15);

// JSON knows no infinity: a block that nobody asked about before it was final has null. What is out of these bounds was not
// written by us, and could keep the clock busy for ever.
const learnedSchema = z.object({
  version: z.literal(VERSION),
  ticks: z.array(z.tuple([z.int().min(0), time.nullable(), time])).max(100),
  enough: z.int().min(1).max(100).default(3),
  groups: z.object({
    meanSize: z.number().min(0).max(10_000_000),
    youngestMs: z.array(z.number().min(-MAX_AGE_MS).max(MAX_AGE_MS)).max(100),
    distances: z.array(z.int().min(1).max(10_000)).max(100),
  }),
  disorder: z.number().min(0).max(1),
});

export function writeLearned({ ticks, enough, groups, disorder }: Learned): string {
  const rows = ticks.map(({ block, after, by }) => [block, Number.isFinite(after) ? after : null, by]);
  return JSON.stringify({ version: VERSION, ticks: rows, enough, groups, disorder });
}

/** Undefined for what another version wrote: then it is learned anew, which takes minutes. */
export function readLearned(text: string): Learned | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = learnedSchema.safeParse(value);
  if (!parsed.success) return undefined;
  const { ticks, enough, groups, disorder } = parsed.data;
  const read = ticks.map(([block, after, by]) => ({ block, after: after ?? Number.NEGATIVE_INFINITY, by }));
  return { ticks: read, enough, groups, disorder };
}
