// What one server gets through: answers asked for by itself and by three workers through Redis, jobs of the intake, and
// commits of the ledger. Needs redis-server. The upstream is a server in this process that answers after 100 ms.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Queue } from 'bullmq';
import { systemClock } from '../src/clock.ts';
import { BullmqEngine } from '../src/engines/bullmq.ts';
import { Intake, SUBMISSIONS_QUEUE } from '../src/engines/intake.ts';
import { createLocalEngine } from '../src/engines/local.ts';
import { RedisLink } from '../src/engines/redis-link.ts';
import { Ledger } from '../src/ledger/ledger.ts';
import type { PollEngine } from '../src/monitor/ports.ts';
import type { TrackRequest } from '../src/monitor/submission.ts';
import { UpstreamClient } from '../src/upstream/client.ts';

const IN_FLIGHT = 500;
const BATCH = 50;
const SECONDS = 8;
const LATENCY_MS = 100;
const WORKERS = 3;

let made = 0;
const folder = mkdtempSync(join(tmpdir(), 'dawatch-bench-'));
const upstream = createServer((_request, response) => {
  setTimeout(() => response.end('{"state":"Pending","error":null,"data":null}'), LATENCY_MS);
}).listen(0, '127.0.0.1');
await once(upstream, 'listening');
const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
const redisPort = await freePort();
const quiet = ['--save', '', '--appendonly', 'yes', '--loglevel', 'warning'];
const redisServer = spawn('redis-server', ['--port', String(redisPort), '--dir', folder, ...quiet], {
  stdio: 'ignore',
});
const redis = { url: `redis://127.0.0.1:${redisPort}`, prefix: 'bull' };

const settings = { url: upstreamUrl, apiKey: 'bench', connections: IN_FLIGHT, timeoutMs: 5_000, now: Date.now };
const client = new UpstreamClient(settings);
const local = createLocalEngine({ clock: systemClock, ask: (_upstream, id) => client.getSubmissionInfo(id) });
await answers('this process alone', local);

const link = new RedisLink({ redis, clock: systemClock, onEvent: () => undefined });
const limits = { leaseMsOf: () => 20_000, timeoutMsOf: () => 5_000 };
const engine = new BullmqEngine({ redis, link, local, clock: systemClock, ...limits, onEvent: () => undefined });
const env = { DAWATCH_REDIS_URL: redis.url, DAWATCH_UPSTREAM_URL: upstreamUrl, DAWATCH_LOG_LEVEL: 'error' };
const workers = Array.from({ length: WORKERS }, () =>
  spawn(process.execPath, ['src/cli/main.ts', 'worker'], { stdio: 'inherit', env }),
);
while (link.usable?.workers.length !== WORKERS || !engine.isReading) await sleep(100);
await answers(`${WORKERS} workers through Redis`, engine);

const ledger = new Ledger({ file: join(folder, 'ledger.db'), now: Date.now() });
ledger.upstream('default');
const track = (ids: readonly string[]) => ledger.track(ids.map(request), Date.now());
await rate('ledger: tracking, one id per commit', 1, () => track([id()]));
await rate('ledger: tracking, 100 ids per commit', 100, () => track(Array.from({ length: 100 }, id)));
for (const perJob of [1, 100]) {
  const queue = new Queue(SUBMISSIONS_QUEUE, { connection: { url: redis.url } });
  const jobs = Array.from({ length: perJob === 1 ? 5_000 : 500 }, () => Array.from({ length: perJob }, id));
  await queue.addBulk(jobs.map((submission_ids) => ({ name: 'track', data: { submission_ids } })));
  const from = performance.now();
  const intake = new Intake({
    redis,
    track: ({ submission_ids = [] }) => track(submission_ids),
    onRefused: console.error,
    onPostponed: console.error,
  });
  while ((await queue.getCompletedCount()) < jobs.length) await sleep(20);
  show(`intake: ${perJob} ids per job`, (jobs.length * perJob * 1_000) / (performance.now() - from), 'ids/s');
  await intake.close(1_000);
  await queue.obliterate({ force: true });
  await queue.close();
}

for (const worker of workers) worker.kill();
await Promise.all(workers.map((worker) => once(worker, 'exit')));
await engine.close();
await link.close();
await client.close();
ledger.close();
redisServer.kill();
upstream.closeAllConnections();
upstream.close();
rmSync(folder, { recursive: true, force: true });

/** Keeps so many questions under way for some seconds. */
async function answers(label: string, polling: PollEngine): Promise<void> {
  const until = performance.now() + SECONDS * 1_000;
  let answered = 0;
  const ask = async () => {
    while (performance.now() < until)
      await polling.poll({ upstream: 'default', submissionIds: Array.from({ length: BATCH }, id) }, () => {
        answered += 1;
      });
  };
  const from = performance.now();
  await Promise.all(Array.from({ length: IN_FLIGHT / BATCH }, ask));
  show(label, (answered * 1_000) / (performance.now() - from), 'answers/s');
}

async function rate(label: string, each: number, work: () => unknown): Promise<void> {
  const from = performance.now();
  let count = 0;
  for (; performance.now() - from < 3_000; count += each) work();
  show(label, (count * 1_000) / (performance.now() - from), 'ids/s');
}

function show(label: string, perSecond: number, unit: string): void {
  console.log(`${label.padEnd(40)} ${Math.round(perSecond).toLocaleString('en').padStart(8)} ${unit}`);
}

function id(): string {
  return `bench-${++made}`;
}

function request(submissionId: string): TrackRequest {
  const far = Date.now() + 1_000_000_000;
  const limits = { deadlineAt: far, graceEndsAt: far, stuckAt: far };
  return { submissionId, upstream: 'default', metadata: null, callbackUrl: null, ...limits };
}

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
