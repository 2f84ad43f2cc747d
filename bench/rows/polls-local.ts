import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'polls per second, each recorded in the ledger (synchronous=FULL), local engine',
  beside: 'a bare undici Pool that only reads and parses',
  target: { min: 0.7 },
  // Enough responses to share commits: with a latency of 15 ms this allows 17,000 polls per second.
  concurrency: 256,
  throughRedis: false,
});
