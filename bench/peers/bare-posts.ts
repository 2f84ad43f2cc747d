// Minimal cost of deliveries: an undici Pool that posts one body repeatedly, without signing or
// storing anything.
import { Pool } from 'undici';

const [url, concurrency, seconds, body] = JSON.parse(process.argv[2] ?? '[]') as [
  string,
  number,
  number,
  string,
];
const pool = new Pool(url, { connections: concurrency });
const until = performance.now() + seconds * 1_000;
let posts = 0;

async function post(): Promise<void> {
  while (performance.now() < until) {
    const response = await pool.request({
      method: 'POST',
      path: '/hook',
      headers: { 'content-type': 'application/json' },
      body,
    });
    await response.body.dump();
    posts += 1;
  }
}

const startedAt = performance.now();
await Promise.all(Array.from({ length: concurrency }, post));
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({
    perSecond: (posts * 1_000) / (performance.now() - startedAt),
    cpuUs: (user + system) / posts,
  }),
);
await pool.close();
