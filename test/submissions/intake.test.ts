import { expect, it } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { Intake } from '../../src/submissions/intake.ts';
import type { TrackedSubmission, TrackResult } from '../../src/submissions/store-results.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';

/** The intake of a ledger that records the names of the requests of each commit. */
function openIntake() {
  const commits: string[] = [];
  const track = (groups: readonly (readonly TrackRequest[])[]): TrackResult[] => {
    const names = groups.map(([first]) => first?.submissionId.split('-')[0] ?? '');
    commits.push(names.join('+'));
    if (names.includes('bad')) throw new Error('this one cannot be kept');
    if (names.includes('full')) throw new LedgerError('full', 'no room');
    const submission = {} as TrackedSubmission;
    return groups.map((group) => ({ kind: 'tracked', submissions: group.map(() => submission) }));
  };
  const intake = new Intake({
    config: { submissions: { deadline_s: 60, unknown_grace_s: 60, stuck_after_s: 60 } as never },
    store: { track },
    clock: { now: () => 0, elapsed: () => 0, after: () => () => undefined },
    hasUpstream: () => true,
    refusalOf: () => undefined,
  });
  const take = async (name: string, ids: number): Promise<string> => {
    const submission_ids = Array.from({ length: ids }, (_, index) => `${name}-${index}`);
    try {
      return (await intake.track({ submission_ids }))?.kind ?? 'shed';
    } catch (error) {
      return (error as Error).message;
    }
  };
  return { intake, commits, take };
}

it('commits requests that wait together in one turn, at most a thousand ids at once', async () => {
  const { intake, commits, take } = openIntake();
  const waiting = { a: 600, b: 400, c: 1, d: 1 };
  const taken = Object.entries(waiting).map(([name, ids]) => take(name, ids));
  expect(intake.waitingIds).toBe(1_002);
  expect(await Promise.all(taken)).toEqual(taken.map(() => 'tracked'));
  expect(commits).toEqual(['a+b', 'c+d']);
  expect(intake.waitingIds).toBe(0);
});

it('refuses a request while 50,000 ids wait, and keeps nothing of it', async () => {
  const { intake, commits, take } = openIntake();
  const waiting = Array.from({ length: 50 }, () => take('kept', 1_000));
  expect([intake.waitingIds, intake.isFull()]).toEqual([50_000, true]);
  expect(await take('more', 1)).toBe('shed');
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'tracked'));
  expect(await take('more', 1)).toBe('tracked');
  expect(commits).toEqual([...waiting.map(() => 'kept'), 'more']);
});

it('repeats a failed batch one by one, so that one failure does not affect the others', async () => {
  const { commits, take } = openIntake();
  const taken = ['a', 'bad', 'b'].map((name) => take(name, 1));
  expect(await Promise.all(taken)).toEqual(['tracked', 'this one cannot be kept', 'tracked']);
  expect(commits).toEqual(['a+bad+b', 'a', 'bad', 'b']);
});

it('fails a whole batch at once if the ledger cannot be written', async () => {
  const { commits, take } = openIntake();
  const taken = ['a', 'full'].map((name) => take(name, 1));
  expect(await Promise.all(taken)).toEqual(['no room', 'no room']);
  expect(commits).toEqual(['a+full']);
});
