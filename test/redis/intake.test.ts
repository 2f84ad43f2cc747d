import { Worker } from 'bullmq';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LedgerError } from '../../src/ledger/errors.ts';
import { SUBMISSIONS_QUEUE } from '../../src/redis/connections.ts';
import { IntakeWorker } from '../../src/redis/intake.ts';
import type { TrackBody } from '../../src/submissions/track-request.ts';
import { openQueue, recordLog } from '../support/redis/bullmq-rig.ts';
import { isRedisMissing, type RedisServer, redisForTest } from '../support/redis/redis-server.ts';
import { eventually } from '../support/until.ts';

type Track = ConstructorParameters<typeof IntakeWorker>[0]['track'];

/** Distinguishes known from new ids, as the ledger does. */
function ledger(): Track & { ids: Set<string>; bodies: TrackBody[] } {
  const ids = new Set<string>();
  const bodies: TrackBody[] = [];
  const track = async (body: TrackBody) => {
    bodies.push(body);
    const items = body.submissions?.map(({ submission_id }) => submission_id);
    const given = items ?? body.submission_ids ?? [body.submission_id ?? ''];
    const submissions = given.map((id) => ({
      effect: ids.has(id) ? ('already_tracked' as const) : ('accepted' as const),
      submission: {} as never,
    }));
    for (const id of given) ids.add(id);
    return { kind: 'tracked', submissions } as const;
  };
  return Object.assign(track, { ids, bodies });
}

function openIntake(redis: RedisServer, track: Track) {
  const { log, logged } = recordLog();
  const intake = new IntakeWorker({
    redis: { url: redis.url },
    track,
    log,
  });
  onTestFinished(() => intake.close(2_000));
  return (event: string) => logged.filter(({ msg }) => msg === event);
}

function openProducer(redis: RedisServer) {
  const queue = openQueue(redis, SUBMISSIONS_QUEUE);
  const ended = (id: string | undefined) =>
    eventually(async () => {
      const job = await queue.getJob(id ?? '');
      if (!job?.finishedOn) throw new Error('not yet');
      return job;
    });
  const enqueue = async (data: unknown, options = {}) =>
    (await queue.add('track', data, options)).id;
  return { queue, enqueue, ended };
}

const counts = (some: Record<string, number>) => ({
  ...{ accepted: 0, already_tracked: 0, already_final: 0, retracked: 0 },
  ...{ kept_options: [], ...some },
});

describe.skipIf(isRedisMissing())('the intake', () => {
  it('accepts one id, many, or submissions with their own options, and returns how many were new', async () => {
    const redis = await redisForTest();
    const track = ledger();
    openIntake(redis, track);
    const { enqueue, ended } = openProducer(redis);
    const one = await ended(await enqueue({ submission_id: 'a', metadata: { order: 1 } }));
    expect(one.returnvalue).toEqual(counts({ accepted: 1 }));
    const more = await ended(await enqueue({ submission_ids: ['a', 'b', 'c'] }));
    expect(more.returnvalue).toEqual(counts({ accepted: 2, already_tracked: 1 }));
    expect(track.bodies[0]).toEqual({ submission_id: 'a', metadata: { order: 1 } });
    const submissions = [{ submission_id: 'd', metadata: { order: 2 } }, { submission_id: 'a' }];
    const items = await ended(await enqueue({ submissions }));
    expect(items.returnvalue).toEqual(counts({ accepted: 1, already_tracked: 1 }));
  });

  it.each<[string, unknown, RegExp]>([
    ['no id', {}, /exactly one of submission_id, submission_ids and submissions/],
    ['both', { submission_id: 'a', submission_ids: ['b'] }, /exactly one/],
    ['an id with a space', { submission_id: 'a b' }, /submission_id/],
    ['an unknown field', { submission_id: 'a', colour: 'red' }, /colour/],
    [
      'names of several megabytes',
      { ['k'.repeat(1_000_000)]: 1, '\u001b[31m': 2 },
      /^(?=.{50,1200}$)\P{Cc}*there is no field/u,
    ],
  ])('fails a job of %s with the reason, without a retry', async (_what, data, reason) => {
    const redis = await redisForTest();
    const track = ledger();
    const logged = openIntake(redis, track);
    const { enqueue, ended } = openProducer(redis);
    const job = await ended(await enqueue(data, { attempts: 5 }));
    expect(job.failedReason).toMatch(reason);
    expect(job.failedReason.length).toBeLessThan(2_000);
    expect(job.attemptsMade).toBe(1);
    expect(track.ids.size).toBe(0);
    expect(logged('intake.refused')).toHaveLength(1);
  });

  it.each<[Awaited<ReturnType<Track>>, string]>([
    [
      { kind: 'invalid', field: 'upstream', reason: 'no upstream is named "x"' },
      'upstream: no upstream is named "x"',
    ],
    [
      {
        kind: 'conflict',
        field: 'submission_ids/0',
        submissionId: 'a',
        reason: 'is already tracked at the upstream other',
      },
      'a is already tracked at the upstream other; nothing was accepted',
    ],
  ])('fails a job that the ledger refuses with the reason', async (result, reason) => {
    const redis = await redisForTest();
    openIntake(redis, async () => result);
    const { enqueue, ended } = openProducer(redis);
    expect((await ended(await enqueue({ submission_id: 'a' }))).failedReason).toBe(reason);
  });

  it('retries while the ledger cannot be written, whatever number of attempts the producer set', async () => {
    const redis = await redisForTest();
    const track = ledger();
    let failures = 2;
    const logged = openIntake(redis, async (body) => {
      if (failures-- > 0) throw new LedgerError('full', 'no room');
      return track(body);
    });
    const { enqueue, ended } = openProducer(redis);
    const job = await ended(await enqueue({ submission_id: 'a' }, { attempts: 1 }));
    expect(job.returnvalue).toEqual(counts({ accepted: 1 }));
    expect(logged('intake.postponed')).toMatchObject([
      { retry_after_ms: 1_000 },
      { retry_after_ms: 2_000 },
    ]);
  });

  it('fails a job of more bytes than a request may have before it is taken, and keeps its data', async () => {
    const redis = await redisForTest();
    const { queue, enqueue, ended } = openProducer(redis);
    const data = { submission_id: 'a', metadata: { note: 'x'.repeat(8 * 1024 * 1024) } };
    const ids = [
      await enqueue(data),
      await enqueue(data, { priority: 1 }),
      await enqueue(data, { delay: 1 }),
      await enqueue(data, { lifo: true, attempts: 5 }),
    ];
    const small = await enqueue({ submission_id: 'small' });
    const track = ledger();
    const logged = openIntake(redis, track);
    ids.push(await enqueue(data, { deduplication: { id: 'once' } }));
    for (const id of ids) {
      const { failedReason, attemptsStarted, data: kept } = await ended(id);
      expect(failedReason).toMatch(/^the job has 83886\d\d bytes; at most 8388608 are accepted$/);
      expect([attemptsStarted, kept]).toEqual([0, data]);
    }
    expect((await ended(small)).returnvalue).toEqual(counts({ accepted: 1 }));
    const again = await enqueue({ submission_id: 'b' }, { deduplication: { id: 'once' } });
    expect((await ended(again)).returnvalue).toEqual(counts({ accepted: 1 }));
    expect([...track.ids]).toEqual(['small', 'b']);
    expect(logged('intake.refused')).toHaveLength(ids.length);
    expect(await queue.getJobCounts('failed', 'active', 'wait')).toEqual({
      failed: ids.length,
      active: 0,
      wait: 0,
    });
  });

  it('accepts a job that outlived many servers', async () => {
    const redis = await redisForTest();
    const { queue, enqueue, ended } = openProducer(redis);
    const id = await enqueue({ submission_id: 'a' });
    const watch = {
      lockDuration: 50,
      stalledInterval: 50,
      maxStalledCount: 1_000,
      skipLockRenewal: true,
    };
    const dying = new Worker(SUBMISSIONS_QUEUE, null, { connection: { url: redis.url }, ...watch });
    dying.on('error', () => undefined);
    await dying.startStalledCheckTimer();
    for (let death = 1; death <= 4; death++) {
      await dying.getNextJob(`token-${death}`, { block: false });
      await eventually(async () => expect(await queue.getWaitingCount()).toBe(1));
    }
    await dying.close();
    expect((await queue.getJob(id ?? ''))?.stalledCounter).toBe(4);
    openIntake(redis, ledger());
    expect((await ended(id)).returnvalue).toEqual(counts({ accepted: 1 }));
  });
});
