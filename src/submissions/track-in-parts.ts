import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { SubmissionWatcher, TrackedSubmission, TrackResult } from './ports.ts';
import type { TrackRequest } from './submission.ts';

/**
 * Largest number of ids in one commit. Each takes 20 to 50 microseconds, in which nothing else
 * runs.
 */
export const MAX_COMMIT_IDS = 1_000;

/**
 * Tracks a request in steps, between which other work can run. Yields the number of ids that a step
 * has committed.
 */
export type TrackingSteps = Generator<number, TrackResult>;

/**
 * Tracks a request of any size, of which each commit has at most MAX_COMMIT_IDS. A large one is
 * checked as a whole before, so that a refused one stores nothing, unless another request for the
 * same ids was committed in between; then, and if the ledger cannot be written, `stored` counts the
 * submissions of earlier commits. Repeating the request is safe.
 */
export function* trackInParts(
  watcher: Pick<SubmissionWatcher, 'refusalOf' | 'track'>,
  requests: readonly TrackRequest[],
): TrackingSteps {
  if (requests.length <= MAX_COMMIT_IDS) return watcher.track(requests);
  const refusal = watcher.refusalOf(requests);
  if (refusal) return refusal;
  yield 0;
  const submissions: TrackedSubmission[] = [];
  while (submissions.length < requests.length) {
    const stored = submissions.length;
    const part = requests.slice(stored, stored + MAX_COMMIT_IDS);
    const result = counting(stored, () => watcher.track(part));
    if (result.kind !== 'tracked')
      return { ...result, stored, ...('index' in result && { index: stored + result.index }) };
    submissions.push(...result.submissions);
    if (submissions.length < requests.length) yield part.length;
  }
  return { kind: 'tracked', submissions };
}

/**
 * Adds the number of submissions of earlier commits to the error of a ledger that cannot be
 * written.
 */
function counting<T>(stored: number, commit: () => T): T {
  try {
    return commit();
  } catch (error) {
    if (error instanceof LedgerUnavailableError) error.stored = stored;
    throw error;
  }
}

/** Says how much of a refused request was accepted. `stored`: see TrackRefusal. */
export function acceptedText(stored = 0): string {
  return stored === 0 ? 'nothing was accepted' : `the first ${stored} submissions were accepted`;
}
