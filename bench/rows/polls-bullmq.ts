import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'the same through BullMQ, one worker process',
  beside: 'the same bare undici Pool',
  bar: { least: 0.5 },
  // The way through Redis and back is longer than the one to the upstream.
  concurrency: 768,
  throughRedis: true,
});
