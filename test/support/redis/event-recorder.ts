import { Worker } from 'bullmq';
import { onTestFinished } from 'vitest';
import { EVENTS_QUEUE } from '../../../src/notify/channels/queue.ts';

/** Consumes the jobs of dawatch-events, and records each body by its id. */
export function recordEvents({ url }: { url: string }): Map<string, Set<string>> {
  const bodies = new Map<string, Set<string>>();
  const worker = new Worker(
    EVENTS_QUEUE,
    async ({ id = '', data }) => {
      bodies.set(id, (bodies.get(id) ?? new Set()).add(JSON.stringify(data)));
    },
    { connection: { url, retryStrategy: () => 200 }, concurrency: 20, runRetryDelay: 500, stalledInterval: 5_000 },
  );
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
  return bodies;
}
