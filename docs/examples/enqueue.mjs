// node enqueue.mjs ID…: tracks submissions through the queue and waits until all of them are final.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';

const url = process.env.DAWATCH_REDIS_URL ?? 'redis://127.0.0.1:6379';
const server = process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080';
const ids = process.argv.slice(2);

// While Redis is unreachable, `add` fails after one retry; otherwise this process would keep the job in memory indefinitely.
const queue = new Queue('dawatch-submissions', {
  connection: { url, maxRetriesPerRequest: 1, connectTimeout: 3_000 },
  skipWaitingForReady: true,
});
queue.on('error', () => undefined);

// Use your own job id: BullMQ's ids are a counter in Redis, which restarts when Redis is emptied and then names other jobs.
const jobId = `track-${randomUUID()}`;
try {
  await queue.add('track', { submission_ids: ids, metadata: { example: true } }, { jobId });
} catch (error) {
  console.error('not enqueued:', error.message);
  process.exit(1);
}

// The job completes when the ids are on the server's disk, and fails with the reason if its data is invalid. Without a server it
// waits. If the job has disappeared from Redis, enqueue it again: ids that are already tracked stay unchanged.
for (;;) {
  const done = await queue.getJob(jobId);
  if (!done) throw new Error('Redis has lost the job');
  if (done.finishedOn && done.failedReason) {
    console.error('refused:', done.failedReason);
    process.exit(1);
  }
  if (done.finishedOn) {
    console.log('tracked', done.returnvalue);
    break;
  }
  await sleep(250);
}
await queue.close();

// Any number of producers can wait like this; dawatch-events has one consumer.
for (const id of ids) {
  for (;;) {
    const response = await fetch(
      `${server}/v1/submissions/${encodeURIComponent(id)}/wait?timeout_s=60`,
      {
        headers: { 'x-api-key': process.env.DAWATCH_API_KEY ?? '' },
      },
    );
    if (!response.ok) throw new Error(`HTTP ${response.status} from ${server}`);
    const submission = await response.json();
    if (['tracking', 'pending', 'failing'].includes(submission.status)) continue;
    console.log(submission.status, id, submission.data?.block_number ?? '');
    break;
  }
}
