// The usual poller with BullMQ: a job per submission, which is polled and delayed by 5 s until it
// is final, and a row in SQLite for each change. Its jobs are added in bulk and removed when they
// are done. Unlike those of dawatch, its commits do not wait for the disk.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { DelayedError, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Pool } from 'undici';

const NAME = 'submissions';
const CONCURRENCY = 100;
const DELAY_MS = 5_000;

const [url, redisUrl, folder, submissions] = JSON.parse(process.argv[2] ?? '[]') as [
  string,
  string,
  string,
  number,
];
const ids = Array.from({ length: submissions }, () => randomUUID());
const pool = new Pool(url, { connections: CONCURRENCY });
const connection = new Redis(redisUrl, { maxRetriesPerRequest: null });
const db = new Database(join(folder, 'poller.db'));
db.pragma('journal_mode = WAL');
db.pragma('synchronous = NORMAL');
db.exec(
  'CREATE TABLE IF NOT EXISTS changes (id TEXT, state TEXT, at INTEGER, answer TEXT, PRIMARY KEY (id, state))',
);
const insert = db.prepare('INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?)');

let polls = 0;
const startedAt = performance.now();
const queue = new Queue<{ id: string }>(NAME, { connection });
const worker = new Worker<{ id: string }>(
  NAME,
  async (job, token) => {
    const { id } = job.data;
    const path = `/v1/get_submission_info?submission_id=${encodeURIComponent(id)}`;
    const { body } = await pool.request({ method: 'GET', path, headers: { 'x-api-key': 'bench' } });
    const text = await body.text();
    const { state } = JSON.parse(text) as { state: string };
    polls += 1;
    insert.run(id, state, Date.now(), text);
    if (state === 'Finalized') return;
    await job.moveToDelayed(Date.now() + DELAY_MS, token);
    throw new DelayedError();
  },
  { connection, concurrency: CONCURRENCY, removeOnComplete: { count: 0 } },
);
let left = ids.length;
const allFinal = new Promise<void>((resolve) => {
  worker.on('completed', () => {
    left -= 1;
    if (left === 0) resolve();
  });
});
for (let from = 0; from < ids.length; from += 1_000)
  await queue.addBulk(ids.slice(from, from + 1_000).map((id) => ({ name: 'poll', data: { id } })));
await allFinal;
const seconds = (performance.now() - startedAt) / 1_000;

await worker.close();
await queue.close();
const ended = once(connection, 'end');
connection.disconnect();
await ended;
await pool.close();
db.close();
console.log(JSON.stringify({ polls, seconds }));
