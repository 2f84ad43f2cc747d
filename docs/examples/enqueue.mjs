// node enqueue.mjs ID…: hands submissions over through the queue, and waits until all of them are final.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Queue } from 'bullmq';

const url = process.env.DAWATCH_REDIS_URL ?? 'redis://127.0.0.1:6379';
const server = process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080';
const ids = process.argv.slice(2);

// While Redis is away, adding fails after one more try: this process must not keep the job in its memory for ever.
const queue = new Queue('dawatch-submissions', {
  connection: { url, maxRetriesPerRequest: 1, connectTimeout: 3_000 },
  skipWaitingForReady: true,
});
queue.on('error', () => undefined);

// An id of your own: BullMQ's are counted in Redis, and begin anew when it was emptied, with somebody else's job.
const jobId = `track-${randomUUID()}`;
try {
  await queue.add('track', { submission_ids: ids, metadata: { example: true } }, { jobId });
} catch (error) {
  console.error('not enqueued:', error.message);
  process.exit(1);
}

// Done once it is on the server's disk; failed with the reason if the data is no good. A server that is away takes it later.
// Gone from Redis: enqueue it again, what is tracked already stays as it is.
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

// Any number of producers may wait so; dawatch-events has one consumer.
for (const id of ids) {
  for (;;) {
    const response = await fetch(`${server}/v1/submissions/${encodeURIComponent(id)}/wait?timeout_s=60`, {
      headers: { 'x-api-key': process.env.DAWATCH_API_KEY ?? '' },
    });
    if (!response.ok) throw new Error(`HTTP ${response.status} from ${server}`);
    const submission = await response.json();
    if (['tracking', 'pending', 'failing'].includes(submission.status)) continue;
    console.log(submission.status, id, submission.data?.block_number ?? '');
    break;
  }
}
