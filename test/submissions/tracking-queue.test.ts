import { expect, it } from 'vitest';
import { LedgerUnavailableError } from '../../src/ledger/errors.ts';
import type { TrackedSubmission, TrackRefusal, TrackResult } from '../../src/submissions/ports.ts';
import type { TrackRequest } from '../../src/submissions/submission.ts';
import { TrackingQueue } from '../../src/submissions/tracking-queue.ts';

const SUBMISSION = {} as TrackedSubmission;

/** A valid request with this number of submissions. */
function requestOf(name: string, ids: number): TrackRequest[] {
  const times = { deadlineAt: 3, graceEndsAt: 2, stuckAt: 1 };
  return Array.from({ length: ids }, () => {
    return { submissionId: name, upstream: 'default', ...times, metadata: null, callbackUrl: null };
  });
}

/** A watcher whose commits call `commit` with the names of their requests. */
function committing(commit: (names: string[]) => void, durable?: Promise<void>) {
  const trackGroups = (groups: readonly (readonly TrackRequest[])[]): TrackResult[] => {
    commit(groups.map((group) => group[0]?.submissionId ?? ''));
    return groups.map((group) => ({ kind: 'tracked', submissions: group.map(() => SUBMISSION) }));
  };
  const track = (requests: readonly TrackRequest[]) => trackGroups([requests])[0] as TrackResult;
  const refusalOf = (requests: readonly TrackRequest[]): TrackRefusal | undefined =>
    requests[0]?.submissionId === 'late' ? { kind: 'late', index: 0 } : undefined;
  return { watcher: { trackGroups, track, refusalOf }, ledger: { whenDurable: () => durable } };
}

function openLine(maxWaitMs: number) {
  const deferred: { run: () => void; restMs: number }[] = [];
  const seen = { now: 0, commitMs: 0, taken: [] as string[], commits: [] as string[] };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const target = committing((names) => {
    seen.commits.push(names.join('+'));
    seen.now += seen.commitMs;
    if (names.includes('bad')) throw new Error('this one cannot be kept');
    if (names.includes('full')) throw new LedgerUnavailableError('no room');
  });
  const queue = new TrackingQueue({
    ...target,
    maxWaitMs,
    defer: (run, restMs) => deferred.push({ run, restMs }),
    now: () => seen.now,
  });
  return {
    queue,
    deferred,
    now: () => seen.now,
    commitsTake: (ms: number) => {
      seen.commitMs = ms;
    },
    take: (name: string, ids: number) => {
      const taken = queue.take(requestOf(name, ids));
      void taken.then(
        (result) => seen.taken.push(result ? name : `not ${name}`),
        () => seen.taken.push(`failed ${name}`),
      );
    },
    taken: async () => {
      await settled();
      return seen.taken.splice(0).join();
    },
    /** Returns the commits since the previous call. */
    commits: () => seen.commits.splice(0),
    /** The duration of other work between two commits. */
    next(tookMs: number): void {
      seen.now += tookMs;
      deferred.shift()?.run();
      const rest = deferred.find(({ restMs }) => restMs > 0);
      seen.now += rest?.restMs ?? 0;
      rest?.run();
      if (rest) deferred.splice(deferred.indexOf(rest), 1);
    },
  };
}

it('lets other work run, then commits waiting requests together in their order', async () => {
  const line = openLine(1_000);
  for (const name of ['a', 'b', 'c']) line.take(name, 5);
  expect([await line.taken(), line.queue.waitingIds, line.deferred.length]).toEqual(['a', 10, 1]);
  line.next(1);
  expect([await line.taken(), line.queue.waitingIds]).toEqual(['b,c', 0]);
  line.next(1);
  expect([line.commits(), line.deferred.length]).toEqual([['a', 'b+c'], 0]);
});

it('commits at most a thousand ids at once', async () => {
  const line = openLine(10_000);
  line.take('first', 1);
  for (const [name, ids] of Object.entries({ a: 600, b: 400, c: 1, large: 2_500, d: 1, e: 1 }))
    line.take(name, ids);
  while (line.deferred.length > 0) line.next(0);
  expect(line.commits()).toEqual(['first', 'a+b', 'c+d+e', 'large', 'large', 'large']);
});

it('repeats a failed batch one by one, so that one failure does not affect the others', async () => {
  const line = openLine(1_000);
  line.take('first', 1);
  for (const name of ['a', 'bad', 'b']) line.take(name, 1);
  line.next(0);
  expect(line.commits()).toEqual(['first', 'a+bad+b', 'a', 'bad', 'b']);
  expect((await line.taken()).split(',').toSorted()).toEqual(['a', 'b', 'failed bad', 'first']);
});

it('fails a whole batch at once if the ledger cannot be written', async () => {
  const line = openLine(1_000);
  line.take('first', 1);
  for (const name of ['a', 'full', 'b']) line.take(name, 1);
  line.next(0);
  expect(line.commits()).toEqual(['first', 'a+full+b']);
  expect((await line.taken()).split(',').toSorted()).toEqual([
    'failed a',
    'failed b',
    'failed full',
    'first',
  ]);
});

it('rests after a long batch, if requests wait, so that other work proceeds', async () => {
  const line = openLine(1_000);
  line.commitsTake(400);
  line.take('a', 5);
  line.take('b', 5);
  expect(await line.taken()).toBe('a');
  line.next(0);
  expect(await line.taken()).toBe('b');
  expect(line.now()).toBe(400 + 100 + 400);
  line.next(0);
  expect([line.now(), line.deferred.length]).toEqual([900, 0]);
});

it('does not extend its rest when other work takes long', async () => {
  const line = openLine(1_000);
  line.take('a', 5);
  line.take('b', 5);
  line.next(400);
  expect([await line.taken(), line.now()]).toEqual(['a,b', 400]);
});

it('is limited by the allowed wait at the recent pace', async () => {
  const line = openLine(1_000);
  line.take('first', 1);
  line.take('a', 9_000);
  line.take('b', 961);
  line.take('c', 960);
  expect(await line.taken()).toBe('first,not b');
  // A hundred times slower.
  line.next(10);
  line.next(10_000);
  expect(await line.taken()).toBe('c');
  for (let part = 0; part < 9; part++) line.next(10_000);
  expect(await line.taken()).toBe('a');
  line.take('d', 90);
  line.take('e', 90);
  expect(await line.taken()).toBe('not e');
  line.next(0);
  expect(await line.taken()).toBe('d');
});

it('accepts a large batch among many small requests', async () => {
  const line = openLine(5_000);
  for (let turn = 0; turn < 200; turn++) {
    line.take('small', 1);
    line.take('small', 1);
    line.next(5);
    line.next(0);
    await line.taken();
  }
  line.take('small', 1);
  line.take('small', 1);
  line.take('large', 10_000);
  const taken = [await line.taken()];
  while (line.deferred.length > 0) {
    line.next(5);
    taken.push(await line.taken());
  }
  expect(taken.filter(Boolean)).toEqual(['small', 'small', 'large']);
});

it('refuses requests while the disk hangs, once too many committed ids wait for it', async () => {
  const synced = Promise.withResolvers<void>();
  const queue = new TrackingQueue({
    ...committing(() => undefined, synced.promise),
    maxWaitMs: 1_000,
    defer: (run) => run(),
  });
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    expect(await queue.take(requestOf(name, 10_000))).toMatchObject({ kind: 'tracked' });
  expect(queue.waitingIds).toBe(50_000);
  expect(await queue.take(requestOf('f', 1))).toBeUndefined();
  synced.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(queue.waitingIds).toBe(0);
  expect(await queue.take(requestOf('g', 1))).toMatchObject({ kind: 'tracked' });
});

it('commits a large request in parts, between which other requests have their turns', async () => {
  const line = openLine(10_000);
  line.take('large', 3_000);
  for (const name of ['a', 'b', 'c']) line.take(name, 1);
  expect(await line.taken()).toBe('');
  expect(line.queue.waitingIds).toBe(3_003);
  while (line.deferred.length > 0) line.next(0);
  expect(line.commits()).toEqual(['large', 'a+b+c', 'large', 'large']);
  expect([await line.taken(), line.queue.waitingIds]).toEqual(['a,b,c,large', 0]);
});

it('ends a large request that is refused, or that cannot be committed', async () => {
  const line = openLine(10_000);
  line.take('late', 2_000);
  line.take('full', 2_000);
  line.take('next', 1);
  while (line.deferred.length > 0) line.next(0);
  expect(line.commits()).toEqual(['next', 'full']);
  expect((await line.taken()).split(',').toSorted()).toEqual(['failed full', 'late', 'next']);
  expect(line.queue.waitingIds).toBe(0);
});
