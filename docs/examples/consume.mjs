// node consume.mjs: the only consumer of dawatch's events.
import { Worker } from 'bullmq';

const url = process.env.DAWATCH_REDIS_URL ?? 'redis://127.0.0.1:6379';

// Each job goes to one worker of this queue. An event may arrive twice, with the same id.
const events = new Worker(
  'dawatch-events',
  async ({ data: event }) => {
    const { submission } = event.data;
    console.log(event.type, submission?.submission_id ?? '', submission?.data?.block_number ?? '');
  },
  { connection: { url } },
);
events.on('error', (error) => console.error(error.message));
process.once('SIGTERM', () => events.close());
