import type { Observation } from './classify.ts';

export const BreakerState = {
  closed: 'closed',
  /** The upstream fails: only probes are sent. */
  down: 'down',
  /** The upstream refuses our credentials: only slow probes are sent. */
  unauthorized: 'unauthorized',
} as const;
export type BreakerState = (typeof BreakerState)[keyof typeof BreakerState];

/**
 * The meaning of a response for the state of the upstream. `neutral`: none. `perhaps_up`: none,
 * except that it ends an outage.
 */
export type Health = 'up' | 'perhaps_up' | 'down' | 'unauthorized' | 'neutral';

/** Whether the upstream returned the submission, in any state. */
export function isSeen(observation: Observation): boolean {
  return (
    observation.kind === 'pending' ||
    observation.kind === 'error' ||
    observation.kind === 'finalized'
  );
}

/**
 * Returns the meaning of an observation for the state of the upstream. `seenBefore`: the upstream
 * has returned this submission before. `seenAny`: the upstream has returned any watched submission
 * before.
 */
export function healthOf(
  observation: Observation,
  context: { seenBefore: boolean; seenAny: boolean },
): Health {
  switch (observation.kind) {
    case 'pending':
    case 'finalized':
    case 'error':
    case 'rejected':
      return 'up';
    case 'not_found':
      if (!observation.ambiguous) return 'up';
      // A failing database causes the same response. For a submission that was returned before, it
      // must be a failure. For a new one it has no meaning, but it ends an outage if no returned
      // submission is left to probe with.
      if (context.seenBefore) return 'down';
      return context.seenAny ? 'neutral' : 'perhaps_up';
    case 'unavailable':
      // The 4xx concerns only this request: a few invalid ids must not stop the polling of all
      // others.
      return observation.reason === 'refused' ? 'neutral' : 'down';
    case 'unauthorized':
      return 'unauthorized';
    case 'throttled':
      return 'neutral';
    default:
      return observation satisfies never;
  }
}
