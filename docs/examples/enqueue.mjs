// Hands submissions over through Redis and waits until each is final: node enqueue.mjs <submission id> …
import { Queue, QueueEvents, Worker } from 'bullmq';

const url = process.env.DAWATCH_REDIS_URL ?? 'redis://127.0.0.1:6379';
const open = new Set(process.argv.slice(2));

// While Redis is away, adding fails after one more try: this process must not keep the job in its memory for ever.
const queue = new Queue('dawatch-submissions', {
  connection: { url, maxRetriesPerRequest: 1, connectTimeout: 3_000 },
  skipWaitingForReady: true,
});
queue.on('error', () => undefined);

let job;
try {
  job = await queue.add('track', { submission_ids: [...open], metadata: { example: true } });
} catch (error) {
  console.error('not enqueued:', error.message);
  process.exit(1);
}

// Done once it is on the server's disk; rejected with the reason if the data is no good. A server that is away takes it later.
const jobs = new QueueEvents('dawatch-submissions', { connection: { url } });
try {
  console.log('tracked', await job.waitUntilFinished(jobs));
} catch (error) {
  console.error('refused:', error.message);
  process.exit(1);
}

// Every event is a job, for one of the workers on this queue. It may come twice, with the same id.
const events = new Worker(
  'dawatch-events',
  async ({ data: event }) => {
    const { submission } = event.data;
    if (!open.has(submission?.submission_id)) return;
    console.log(event.type, submission.submission_id, submission.data?.block_number ?? '');
    if (['tracking', 'pending', 'failing'].includes(submission.status)) return;
    open.delete(submission.submission_id);
    if (open.size === 0) done();
  },
  { connection: { url } },
);
events.on('error', (error) => console.error(error.message));

async function done() {
  await Promise.all([events.close(), jobs.close(), queue.close()]);
}
