import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'polls per second, each recorded in the ledger, through BullMQ and one worker process',
  target: { min: 0.5 },
  // The round trip through Redis takes longer than the request to the upstream.
  concurrency: 768,
  throughRedis: true,
});
