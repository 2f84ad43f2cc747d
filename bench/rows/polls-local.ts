import { pollsRow } from '../support/polls-row.ts';

export const row = pollsRow({
  what: 'polls per second, each recorded in the ledger (synchronous=FULL), local engine',
  beside: 'a bare undici Pool that only reads and parses',
  target: { least: 0.7 },
  // As many as answers are worth to share a commit: at 15 ms to an upstream, so many make 17,000 polls a second.
  concurrency: 256,
  throughRedis: false,
});
