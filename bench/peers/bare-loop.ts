// Minimal cost of polls: an undici Pool whose responses are read and parsed, but not stored.
import { randomUUID } from 'node:crypto';
import { Pool } from 'undici';

const [url, concurrency, seconds] = JSON.parse(process.argv[2] ?? '[]') as [string, number, number];
const pool = new Pool(url, { connections: concurrency });
const until = performance.now() + seconds * 1_000;
let polls = 0;

async function poll(): Promise<void> {
  while (performance.now() < until) {
    const { body } = await pool.request({
      method: 'GET',
      path: `/v1/get_submission_info?submission_id=${randomUUID()}`,
      headers: { 'x-api-key': 'bench' },
    });
    JSON.parse(await body.text());
    polls += 1;
  }
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: concurrency }, poll));
console.log(JSON.stringify({ perSecond: (polls * 1_000) / (performance.now() - startedAt) }));
await pool.close();
