import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'polls per second, each synced to the disk',
  target: { min: 0.45 },
  // Enough responses to share commits: with a latency of 15 ms this allows 17,000 polls per second.
  concurrency: 256,
  throughRedis: false,
});
