// node follow-events.mjs: prints how submissions end, from now on. After a restart it continues where it stopped.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DawatchClient } from '@dawatch/client';

const client = new DawatchClient({
  url: process.env.DAWATCH_URL ?? 'http://127.0.0.1:8080',
  apiKey: process.env.DAWATCH_API_KEY,
});
const file = 'position.txt';
const stop = new AbortController();
process.once('SIGINT', () => stop.abort()).once('SIGTERM', () => stop.abort());

const events = client.events({
  types: ['submission.finalized', 'submission.failed', 'submission.expired'],
  // Without `after`, the feed begins with the next event; 0 would replay all that the server keeps.
  ...(existsSync(file) && { after: Number(readFileSync(file, 'utf8')) }),
  signal: stop.signal,
});
for await (const { seq, type, data } of events) {
  console.log(seq, type, data.submission.submission_id, data.submission.data?.block_number ?? '');
  // Store the position after the event is processed: after a crash, the last one may come again.
  writeFileSync(file, String(seq));
}
