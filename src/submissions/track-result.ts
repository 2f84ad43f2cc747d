import type { TrackResult, UpdateResult } from './ports.ts';
import type { Submission } from './submission.ts';
import { acceptedText } from './track-in-parts.ts';
import type { TrackRequests } from './track-request.ts';

/** `field`: place of the cause in the body, as a JSON pointer without its first slash. */
export type TrackRequestResult =
  | Exclude<TrackResult, { kind: 'conflict' | 'late' }>
  | { kind: 'conflict'; field: string; submission: Submission; stored?: number }
  | { kind: 'invalid'; field: string; reason: string };

/** Returns the result for a client: a refusal names the place of its cause in the body. */
export function trackResultOf(
  { fieldOf }: Extract<TrackRequests, { kind: 'requests' }>,
  result: TrackResult,
): TrackRequestResult {
  switch (result.kind) {
    case 'tracked':
      return result;
    case 'conflict': {
      const { index, ...conflict } = result;
      return { ...conflict, field: fieldOf(index, 'submission_id') };
    }
    case 'late': {
      const { stored } = result;
      const reason = `the deadline is not in the future${stored ? `; ${acceptedText(stored)}` : ''}`;
      return { kind: 'invalid', field: fieldOf(result.index, 'deadline'), reason };
    }
    default:
      return result satisfies never;
  }
}

/** Undefined: the id was never tracked. */
export type UpdateRequestResult =
  | UpdateResult
  | { kind: 'invalid'; field: string; reason: string }
  | undefined;
