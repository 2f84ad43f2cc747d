import { z } from 'zod';
import { timeSchema } from '../http/query.ts';
import { iso } from '../lib/timestamps.ts';
import type { Observation } from './classify.ts';

/** Why the submissions of an upstream were not polled, or later than they were due. */
export const DelayCause = {
  /** Consecutive requests failed. */
  upstreamDown: 'upstream_down',
  /** The upstream refused the API key. */
  keyRefused: 'key_refused',
  /** The upstream requested a pause: 429, or Retry-After. */
  paused: 'paused',
  /** More polls were due than the request budget allows. */
  budgetExhausted: 'budget_exhausted',
  /** No result could be stored. */
  ledgerUnavailable: 'ledger_unavailable',
  serverDown: 'server_down',
  /** The machine slept, or its clock was set forward. */
  clockStepped: 'clock_stepped',
} as const;
export type DelayCause = (typeof DelayCause)[keyof typeof DelayCause];

/**
 * A time in which the submissions of an upstream were not polled, or later than they were due.
 * `reason`: the last response, or another detail of the cause. `endedAt`: null while it lasts; the
 * end of a pause is known at its beginning. Times are epoch milliseconds.
 */
export type Delay = { cause: DelayCause; reason: string; beganAt: number; endedAt: number | null };

/** Kept of one upstream. */
export const MAX_DELAYS = 1_000;

export const delaySchema = z
  .object({
    cause: z.enum(DelayCause).meta({ id: 'DelayCause' }),
    reason: z
      .string()
      .describe('The last response of the upstream, or another detail of the cause'),
    began_at: timeSchema,
    ended_at: timeSchema
      .nullable()
      .describe('null: it lasts. The end of a pause is known at its beginning'),
  })
  .describe('A time in which the submission was not polled, or later than it was due')
  .meta({ id: 'Delay' });

export function toDelayBody({
  cause,
  reason,
  beganAt,
  endedAt,
}: Delay): z.output<typeof delaySchema> {
  return {
    cause,
    reason,
    began_at: iso(beganAt),
    ended_at: endedAt === null ? null : iso(endedAt),
  };
}

const MAX_REASON_CHARS = 200;

/** Returns the response in one line: `HTTP 500 …`, `the connection was refused`. */
export function reasonOf(observation: Observation): string {
  const text = 'error' in observation ? (observation.error ?? '') : '';
  const line = text.replace(/\s+/g, ' ').trim() || observation.kind;
  return line.length > MAX_REASON_CHARS ? `${line.slice(0, MAX_REASON_CHARS)}…` : line;
}
