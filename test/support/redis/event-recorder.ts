import { Worker } from 'bullmq';
import { onTestFinished } from 'vitest';
import { EVENTS_QUEUE } from '../../../src/redis/events-queue.ts';
import { openLoopConnection, type RedisAddress } from '../../../src/redis/redis.ts';

/** Consumes the jobs of dawatch-events, and records each body by its id. */
export function recordEvents(address: RedisAddress): Map<string, Set<string>> {
  const bodies = new Map<string, Set<string>>();
  const connection = openLoopConnection(address);
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
    connection.disconnect();
  });
  return bodies;
}
