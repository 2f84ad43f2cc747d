import type { Observation } from './classify.ts';

export const BreakerState = {
  closed: 'closed',
  /** The upstream fails: only probes are sent. */
  down: 'down',
  /** The upstream refuses our credentials: only slow probes are sent. */
  unauthorized: 'unauthorized',
} as const;
export type BreakerState = (typeof BreakerState)[keyof typeof BreakerState];

/** What an answer says about the upstream itself. `neutral`: nothing. `perhaps_up`: nothing, but it ends an outage. */
export type Health = 'up' | 'perhaps_up' | 'down' | 'unauthorized' | 'neutral';

/** Whether the upstream shows the submission, in whatever state. */
export function isSeen(observation: Observation): boolean {
  return observation.kind === 'pending' || observation.kind === 'error' || observation.kind === 'finalized';
}

/**
 * What an answer about one submission says of the upstream itself. `seenBefore`: it has shown this one before.
 * `seenAny`: it has shown any of those that are watched.
 */
export function healthOf(observation: Observation, context: { seenBefore: boolean; seenAny: boolean }): Health {
  switch (observation.kind) {
    case 'pending':
    case 'finalized':
    case 'error':
    case 'rejected':
      return 'up';
    case 'not_found':
      if (!observation.ambiguous) return 'up';
      // "Record not found" with a 500 is also how its database fails. Of a submission that it has shown before it is that;
      // of a new one it says nothing, unless there is none of the others left to tell by.
      if (context.seenBefore) return 'down';
      return context.seenAny ? 'neutral' : 'perhaps_up';
    case 'unavailable':
      // A 4xx is about this one request: a few odd ids must not stop the asking about all others.
      return observation.reason === 'refused' ? 'neutral' : 'down';
    case 'unauthorized':
      return 'unauthorized';
    case 'throttled':
      return 'neutral';
    default:
      return observation satisfies never;
  }
}
