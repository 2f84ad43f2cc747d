import { expect, it } from 'vitest';
import { LedgerUnavailableError } from '../../src/ledger/errors.ts';
import type { TrackedSubmission, TrackResult } from '../../src/submissions/ports.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { TrackingQueue } from '../../src/submissions/tracking-queue.ts';
import { trackRequest } from '../support/ledger/ledger-file.ts';

/** A valid request with this number of submissions, all of this name. */
const requestOf = (name: string, ids: number) =>
  Array.from({ length: ids }, () => trackRequest(name));

/** A queue at a ledger that records the names of the requests of each commit. */
function openQueue() {
  const commits: string[] = [];
  const trackGroups = (groups: readonly (readonly TrackRequest[])[]): TrackResult[] => {
    const names = groups.map((group) => group[0]?.submissionId ?? '');
    commits.push(names.join('+'));
    if (names.includes('bad')) throw new Error('this one cannot be kept');
    if (names.includes('full')) throw new LedgerUnavailableError('no room');
    const submission = {} as TrackedSubmission;
    return groups.map((group) => ({ kind: 'tracked', submissions: group.map(() => submission) }));
  };
  const queue = new TrackingQueue({
    watcher: { trackGroups },
  });
  const take = async (name: string, ids: number): Promise<string> => {
    try {
      return (await queue.take(requestOf(name, ids)))?.kind ?? 'shed';
    } catch (error) {
      return (error as Error).message;
    }
  };
  return { queue, commits, take };
}

it('commits requests that wait together in one turn, at most a thousand ids at once', async () => {
  const { queue, commits, take } = openQueue();
  const waiting = { a: 600, b: 400, c: 1, d: 1 };
  const taken = Object.entries(waiting).map(([name, ids]) => take(name, ids));
  expect(queue.waitingIds).toBe(1_002);
  expect(await Promise.all(taken)).toEqual(taken.map(() => 'tracked'));
  expect(commits).toEqual(['a+b', 'c+d']);
  expect(queue.waitingIds).toBe(0);
});

it('refuses a request while 50,000 ids wait, and keeps nothing of it', async () => {
  const { queue, commits, take } = openQueue();
  const waiting = Array.from({ length: 50 }, () => take('kept', 1_000));
  expect([queue.waitingIds, queue.isFull()]).toEqual([50_000, true]);
  expect(await take('one-more', 1)).toBe('shed');
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'tracked'));
  expect(await take('one-more', 1)).toBe('tracked');
  expect(commits).toEqual([...waiting.map(() => 'kept'), 'one-more']);
});

it('repeats a failed batch one by one, so that one failure does not affect the others', async () => {
  const { commits, take } = openQueue();
  const taken = ['a', 'bad', 'b'].map((name) => take(name, 1));
  expect(await Promise.all(taken)).toEqual(['tracked', 'this one cannot be kept', 'tracked']);
  expect(commits).toEqual(['a+bad+b', 'a', 'bad', 'b']);
});

it('fails a whole batch at once if the ledger cannot be written', async () => {
  const { commits, take } = openQueue();
  const taken = ['a', 'full'].map((name) => take(name, 1));
  expect(await Promise.all(taken)).toEqual(['no room', 'no room']);
  expect(commits).toEqual(['a+full']);
});
