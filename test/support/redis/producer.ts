import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Queue, Worker } from 'bullmq';
import { onTestFinished } from 'vitest';
import {
  EVENTS_QUEUE,
  openLoopRedis,
  openRedis,
  type RedisSettings,
} from '../../../src/redis/connections.ts';
import { sleep } from '../processes/killable-server.ts';

type Address = RedisSettings;

const CHECK_MS = 200;

/**
 * A careful backend with BullMQ only: adds a job, checks until it is completed, and adds it again
 * if it was lost in Redis or could not be sent. Once it is completed, the backend does not need to
 * keep the ids.
 */
export function openProducer(address: Address) {
  const redis = openRedis(address);
  const queue = new Queue('dawatch-submissions', { connection: redis, skipVersionCheck: true });
  queue.on('error', () => undefined);
  onTestFinished(async () => {
    await queue.close();
    redis.disconnect();
  });
  return {
    async enqueue(
      submissionIds: string[],
      signal: AbortSignal,
    ): Promise<{ accepted: number; already_tracked: number }> {
      const data = { submission_ids: submissionIds };
      let jobId: string | undefined;
      for (;;) {
        signal.throwIfAborted();
        try {
          if (jobId === undefined) {
            // A unique id: BullMQ counts its ids in Redis, and starts over when Redis was emptied.
            const own = `track-${randomUUID()}`;
            await queue.add('track', data, { jobId: own });
            jobId = own;
          }
          const job = await queue.getJob(jobId);
          if (!job) jobId = undefined;
          // Redis may also keep the job without its data; such a job was refused, but not the
          // submitted ids.
          else if (job.failedReason && !isDeepStrictEqual(job.data, data)) jobId = undefined;
          else if (job.failedReason) throw new RefusedError(job.failedReason);
          else if (job.returnvalue) return job.returnvalue;
          // A Redis that evicts keys may keep the job, and lose the list that contained it.
          else if ((await job.getState()) === 'unknown') jobId = undefined;
        } catch (error) {
          if (error instanceof RefusedError) throw error;
        }
        await sleep(CHECK_MS);
      }
    },
  };
}

class RefusedError extends Error {}

/** Consumes the jobs of dawatch-events, and records each body by its id. */
export function recordEvents(address: Address): Map<string, Set<string>> {
  const bodies = new Map<string, Set<string>>();
  const connection = openLoopRedis(address);
  const worker = new Worker(
    EVENTS_QUEUE,
    async ({ id = '', data }) => {
      bodies.set(id, (bodies.get(id) ?? new Set()).add(JSON.stringify(data)));
    },
    { connection: connection.redis, concurrency: 20, runRetryDelay: 500, stalledInterval: 5_000 },
  );
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    await worker.close(true);
    connection.close();
  });
  return bodies;
}
