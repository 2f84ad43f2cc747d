// How long after the commit of an event its webhook receives it, beside a bare POST to the same receiver.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/clock.ts';
import { loadConfig } from '../src/config.ts';
import { createMetrics } from '../src/http/metrics/metrics.ts';
import { Ledger } from '../src/ledger/ledger.ts';
import { createLog } from '../src/log.ts';
import { startNotifications } from '../src/wiring/notifications.ts';
import { ms, percentile } from './support/percentiles.ts';

const EVENTS = 500;
const GAP_MS = 10;
const far = Date.now() + 1_000_000_000;

const arrivals: number[] = [];
const receiver = createServer((request, response) => {
  arrivals.push(performance.now());
  request.resume().on('end', () => response.writeHead(204).end());
}).listen(0, '127.0.0.1');
await once(receiver, 'listening');
const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;

const folder = mkdtempSync(join(tmpdir(), 'dawatch-bench-'));
const env = { DAWATCH_WEBHOOK_ALLOW: '127.0.0.0/8', DAWATCH_WEBHOOK_ALLOW_HTTP: 'true' };
const { config } = loadConfig({ file: null, env });
const ledger = new Ledger({ file: join(folder, 'ledger.db'), now: Date.now() });
ledger.upstream('default');
const log = createLog({ ...config.log, level: 'silent' }, process.stderr);
const notifications = await startNotifications({
  config,
  ledger,
  upstreams: ['default'],
  log,
  clock: systemClock,
  random: Math.random,
  version: 'bench',
  happened: createMetrics({ version: 'bench' }).happened,
});
const types = ['*'];
notifications.webhooks.create({ url, types, metadata: null, description: '', signature: 'v1', enabled: true });

/** One event: from the moment at which its commit returned. */
async function throughLedger(): Promise<number> {
  const submissionId = randomUUID();
  const now = systemClock.now();
  const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
  ledger.track([{ submissionId, upstream: 'default', metadata: null, callbackUrl: null, ...limits }], now);
  ledger.cancel(submissionId, now);
  return arrival(performance.now());
}

async function barePost(): Promise<number> {
  const from = performance.now();
  void fetch(url, { method: 'POST', body: '{}' }).then((response) => response.arrayBuffer());
  return arrival(from);
}

async function arrival(from: number): Promise<number> {
  const count = arrivals.length;
  while (arrivals.length === count) await new Promise((resolve) => setImmediate(resolve));
  return (arrivals.at(-1) ?? 0) - from;
}

const measured: Record<string, number[]> = { webhook: [], 'bare POST': [] };
for (let index = 0; index < EVENTS; index++)
  for (const [name, once] of [
    ['webhook', throughLedger],
    ['bare POST', barePost],
  ] as const) {
    measured[name]?.push(await once());
    await new Promise((resolve) => setTimeout(resolve, GAP_MS));
  }
for (const [name, values] of Object.entries(measured))
  console.log(
    `${name.padEnd(10)} p50 ${ms(percentile(values, 50))}, p99 ${ms(percentile(values, 99))}  (${EVENTS} events, from the commit to the receiver)`,
  );

await notifications.stop(1_000);
ledger.close();
receiver.close();
receiver.closeAllConnections();
rmSync(folder, { recursive: true });
