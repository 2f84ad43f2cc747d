import { describe, expect, it, vi } from 'vitest';
import { openTenants } from '../../support/app/tenants.ts';
import { openQueue } from '../../support/redis/bullmq-rig.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';

const UNTIL = { timeout: 20_000, interval: 20 };

describe.skipIf(isRedisMissing())('with Redis', () => {
  it('a tenant has queues of its own for submissions and events, and its jobs wait for room in the quota', async () => {
    const redis = await redisForTest();
    const world = await openTenants({ tenants: { a: { max_open: 1 }, b: {} }, redisUrl: redis.url });
    const client = world.client('a');
    const queue = openQueue(redis, 'dawatch-submissions-a');
    const first = await queue.add('track', { submission_id: 'one' });
    await vi.waitUntil(async () => (await queue.getJob(first.id ?? ''))?.returnvalue, UNTIL);
    expect(await client.json('/v1/submissions/one')).toMatchObject({ status: 'tracking' });
    expect((await world.client('b').send('/v1/submissions/one')).status).toBe(404);
    expect((await world.client(null).send('/v1/submissions/one')).status).toBe(404);

    const second = await queue.add('track', { submission_id: 'two' });
    const never = await queue.add('track', { submission_ids: ['three', 'four'] });
    await vi.waitUntil(async () => (await queue.getJob(never.id ?? ''))?.failedReason, UNTIL);
    expect((await queue.getJob(never.id ?? ''))?.failedReason).toBe('it tracks 2 submissions, of at most 1 open ones');
    expect((await client.send('/v1/submissions/two')).status).toBe(404);
    await client.json('/v1/submissions/one', { method: 'DELETE' });
    await vi.waitUntil(async () => (await queue.getJob(second.id ?? ''))?.returnvalue, UNTIL);

    const events = openQueue(redis, 'dawatch-events-a');
    await vi.waitUntil(async () => (await events.getJobs(['waiting'])).length > 0, UNTIL);
    expect((await events.getJobs(['waiting'])).map(({ name }) => name)).toContain('submission.cancelled');
    expect((await openQueue(redis, 'dawatch-events-b').getJobs()).map(({ name }) => name)).not.toContain(
      'submission.cancelled',
    );
  });
});
