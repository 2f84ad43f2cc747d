// Minimal cost of durable polls: an undici Pool whose responses are parsed and stored in the
// ledger's tables, with one transaction per turn of the event loop. There is no pacing,
// classification, circuit breaker or notification.
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';
import { gathering, openBareLedger, type Polled } from './bare-ledger.ts';

const [url, concurrency, seconds, file, tracked] = JSON.parse(process.argv[2] ?? '[]') as [
  string,
  number,
  number,
  string,
  number,
];
const { insert, keepPolls } = openBareLedger(file);
const ids = Array.from({ length: tracked }, () => randomUUID());
insert(ids);
const keep = gathering<Polled>(keepPolls);
const pool = new Pool(url, { connections: concurrency });
let [sent, polls] = [0, 0];
// The first response about each id is a change and costs more than a typical poll.
let from = Number.POSITIVE_INFINITY;
let before = process.cpuUsage();
let until = Number.POSITIVE_INFINITY;

async function poll(): Promise<void> {
  while (performance.now() < until) {
    const id = ids[sent++ % ids.length] ?? '';
    const { body } = await pool.request({
      method: 'GET',
      path: `/v1/get_submission_info?submission_id=${id}`,
      headers: { 'x-api-key': 'bench' },
    });
    const response = await body.text();
    keep({ id, at: Date.now(), state: JSON.parse(response).state, envelope: response });
    polls += 1;
    if (polls !== tracked) continue;
    from = performance.now();
    before = process.cpuUsage();
    until = from + seconds * 1_000;
  }
}

await Promise.all(Array.from({ length: concurrency }, poll));
const { user, system } = process.cpuUsage(before);
const counted = polls - tracked;
console.log(
  JSON.stringify({
    perSecond: (counted * 1_000) / (performance.now() - from),
    cpuUs: (user + system) / counted,
  }),
);
await pool.close();
