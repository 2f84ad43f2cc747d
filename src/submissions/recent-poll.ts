import { z } from 'zod';
import { timeSchema } from '../http/typed-server.ts';
import { iso } from '../lib/clock.ts';
import type { Observation } from './classify.ts';

const POLL_RESULTS = [
  'pending',
  'finalized',
  'error',
  'not_found',
  'rejected',
  'unauthorized',
  'throttled',
  'unavailable',
] as const satisfies Observation['kind'][];

/** A poll that has ended. `at`: when its response arrived, epoch milliseconds. */
export type RecentPoll = {
  at: number;
  durationMs: number;
  result: (typeof POLL_RESULTS)[number];
};

/** The server keeps this number for each upstream, in memory only. */
export const MAX_RECENT_POLLS = 2_000;

export const recentPollSchema = z
  .object({
    at: timeSchema.describe('When the response arrived'),
    duration_ms: z.number(),
    result: z
      .enum(POLL_RESULTS)
      .describe(
        'pending, finalized, error: the state that the upstream reports; not_found, rejected: it does not know or accept the id; unauthorized: it refuses the key; throttled: it requests a pause; unavailable: no usable response',
      )
      .meta({ id: 'PollResult' }),
  })
  .describe('A poll since the start of the server')
  .meta({ id: 'RecentPoll' });

export function toRecentPollBody({
  at,
  durationMs,
  result,
}: RecentPoll): z.output<typeof recentPollSchema> {
  return { at: iso(at), duration_ms: Math.round(durationMs), result };
}
