// Minimal cost of durable deliveries: each finished body is read from the ledger's tables, signed
// and posted, and its result is stored there, with one transaction per 10 ms. There is no address
// guard, retry or cancellation.
import { createHmac, createSecretKey } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { type Attempted, gathering, openBareLedger } from './bare-ledger.ts';

const [url, concurrency, file, count, body] = JSON.parse(process.argv[2] ?? '[]') as [
  string,
  number,
  string,
  number,
  string,
];
const GATHER_MS = 10;
const { addDeliveries, due, keepAttempts } = openBareLedger(file);
addDeliveries(count, body);
let kept = 0;
const keep = gathering<Attempted>(
  (attempts) => {
    keepAttempts(attempts);
    kept += attempts.length;
  },
  (run) => setTimeout(run, GATHER_MS),
);
const key = createSecretKey(Buffer.alloc(32, 7));
const pool = new Pool(url, { connections: concurrency });
let page: ReturnType<typeof due> = [];
let last = 0;

function next() {
  if (page.length === 0) page = due(last).reverse();
  const delivery = page.pop();
  last = delivery?.id ?? last;
  return delivery;
}

async function post(): Promise<void> {
  for (let delivery = next(); delivery; delivery = next()) {
    const { id, event, body } = delivery;
    const at = Date.now();
    const timestamp = String(Math.floor(at / 1_000));
    const signature = createHmac('sha256', key)
      .update(`${event}.${timestamp}.${body}`)
      .digest('base64');
    const httpResponse = await pool.request({
      method: 'POST',
      path: '/hook',
      headers: {
        'content-type': 'application/json',
        'webhook-id': event,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      },
      body,
    });
    const response = await httpResponse.body.text();
    keep({ id, at, durationMs: Date.now() - at, httpStatus: httpResponse.statusCode, response });
  }
}

const startedAt = performance.now();
const before = process.cpuUsage();
await Promise.all(Array.from({ length: concurrency }, post));
while (kept < count) await sleep(1);
const { user, system } = process.cpuUsage(before);
console.log(
  JSON.stringify({
    perSecond: (count * 1_000) / (performance.now() - startedAt),
    cpuUs: (user + system) / count,
  }),
);
await pool.close();
