import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'polls per second through BullMQ and one worker',
  target: { min: 0.5 },
  // The round trip through Redis takes longer than the request to the upstream.
  concurrency: 768,
  throughRedis: true,
});
