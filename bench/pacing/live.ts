// npm run bench:live: scenarios in real time over HTTP, through the whole product, with nothing
// learned at the start, without and with a node of the chain. Each runs in its own process with its
// own upstream. Arguments: minutes during which submissions are made (default 7), and words that
// select scenarios by name. Exits with code 1 when a bar is missed.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startApp } from '../../src/app.ts';
import { DawatchClient } from '../../src/client/index.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/operations/logging/logger.ts';
import type { SandboxOptionsInput } from '../../src/sandbox/options.ts';
import { type Sandbox, startSandbox } from '../../src/sandbox/server.ts';
import type { RecordedChange } from '../../src/submissions/store-results.ts';
import { Status } from '../../src/submissions/submission.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { seededRandom } from '../support/random.ts';
import { LATENCY_MS } from './simulate.ts';
import { quantile } from './summary.ts';

type LiveScenario = {
  name: string;
  upstream: SandboxOptionsInput;
  perS: number;
  /** Whether a node of the chain announces final blocks. */
  hasNode: boolean;
  bars: { requests: number; meanS: number; p99S: number };
};

/** Time from the finality of a block to its announcement: the longest of `npm run bench:pacing`. */
const ANNOUNCED_S = 0.3;

const PARALLEL = { upstream: { world: 'usual' }, perS: 2 } as const;
const SENDERS = { upstream: { world: 'usual', senders: 30 }, perS: 0.4 } as const;
const SCENARIOS: readonly LiveScenario[] = [
  {
    name: 'parallel usual, 2/s, without a node',
    ...PARALLEL,
    hasNode: false,
    bars: { requests: 1.8, meanS: 0.9, p99S: 3 },
  },
  {
    name: 'parallel usual, 2/s, with a node',
    ...PARALLEL,
    hasNode: true,
    bars: { requests: 1.2, meanS: 0.6, p99S: 2 },
  },
  {
    name: '30 senders usual, 0.4/s, without a node',
    ...SENDERS,
    hasNode: false,
    bars: { requests: 2.6, meanS: 1.6, p99S: 9 },
  },
  {
    name: '30 senders usual, 0.4/s, with a node',
    ...SENDERS,
    hasNode: true,
    bars: { requests: 2.6, meanS: 1.6, p99S: 9 },
  },
];
/**
 * All submissions must be final within this time after the last one. A stall and a second attempt
 * take less.
 */
const PATIENCE_MS = 15 * 60_000;
const SEED = Number(process.env.BENCH_SEEDS?.split(',')[0] ?? 1);

const minutes =
  process.argv
    .slice(2)
    .map(Number)
    .find((value) => value > 0) ?? 7;
const words = process.argv.slice(2).filter((word) => !(Number(word) > 0));
const chosen = SCENARIOS.filter(({ name }) => words.every((word) => name.includes(word)));
if (chosen.length === 0) throw new Error(`no scenario has ${words.join(' and ')} in its name`);
if (process.send === undefined) {
  console.log(`submissions for ${minutes} min, seed ${SEED}`);
  await Promise.all(chosen.map(({ name }) => inOwnProcess(name)));
} else {
  for (const scenario of chosen) report(scenario, await run(scenario));
  process.disconnect();
}

async function inOwnProcess(name: string): Promise<void> {
  const child = fork(import.meta.filename, [String(minutes), name]);
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) process.exitCode = 1;
}

type Measured = { submissions: number; requests: number; lagsMs: number[] };

function report({ name, bars }: LiveScenario, { submissions, requests, lagsMs }: Measured): void {
  const lags = Float64Array.from(lagsMs, (ms) => ms / 1_000).sort();
  const results = [
    ['requests', requests / submissions, bars.requests],
    ['s mean lag', lags.reduce((sum, lag) => sum + lag, 0) / lags.length, bars.meanS],
    ['s p99 lag', quantile(lags, 0.99), bars.p99S],
  ] as const;
  const rows = results.map(
    ([what, value, bar]) => `${value.toFixed(2)} ${what} ${value <= bar ? '✓' : '✗'} ${bar}`,
  );
  console.log(`${name} (${submissions} submissions): ${rows.join(' · ')}`);
  if (results.some(([, value, bar]) => value > bar)) process.exitCode = 1;
}

async function run({ upstream, perS, hasNode }: LiveScenario): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-live-'));
  const sandbox = await startSandbox({
    options: {
      ...upstream,
      nodeFault: 'lagging',
      nodeFaultS: ANNOUNCED_S,
      seed: SEED,
      latencyMs: LATENCY_MS.least,
      latencyJitterMs: LATENCY_MS.jitter,
    },
  });
  const lagsMs: number[] = [];
  const recorded = ({ at, previousStatus, submission }: RecordedChange) => {
    if (previousStatus === Status.finalized || submission.status !== Status.finalized) return;
    const finalAt = sandbox.model.finalizedAt(submission.submissionId, at) ?? at;
    lagsMs.push(at - Math.max(finalAt, submission.trackedAt));
  };
  const apiKey = 'a-key-for-this-run-only-0123456789';
  const env: NodeJS.ProcessEnv = {
    DAWATCH_UPSTREAM_URL: sandbox.url,
    DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
    DAWATCH_DATABASE: join(folder, 'dawatch.db'),
    DAWATCH_PORT: '0',
    DAWATCH_SERVICE_KEY: apiKey,
  };
  if (hasNode) env.DAWATCH_CHAIN_URL = sandbox.url.replace('http:', 'ws:');
  const { config } = loadConfig({ file: null, env });
  const budget = { requests: 1_000, per_s: 1, concurrency: 64 };
  const app = await startApp({
    config: { ...config, upstreams: { default: { ...config.upstreams.default, budget } } },
    log: createLog({ level: 'silent' }, process.stderr),
    clock: systemClock,
    random: Math.random,
    onNewKey: () => undefined,
    listener: { recorded },
  });
  try {
    const submissions = await submitAll(sandbox, new DawatchClient({ url: app.url, apiKey }), perS);
    const untilMs = Date.now() + PATIENCE_MS;
    while (lagsMs.length < submissions && Date.now() < untilMs) await setTimeout(50);
    if (lagsMs.length < submissions)
      throw new Error(`${submissions - lagsMs.length} submissions were never final`);
    return { submissions, requests: sandbox.stats().requests, lagsMs };
  } finally {
    await app.close();
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Makes submissions as a Poisson process and tracks each at once. Returns their number. */
async function submitAll(sandbox: Sandbox, client: DawatchClient, perS: number): Promise<number> {
  const random = seededRandom(SEED);
  const startMs = Date.now();
  let submitted = 0;
  for (let atMs = startMs; ; submitted++) {
    atMs += (-1_000 * Math.log(1 - random())) / perS;
    if (atMs > startMs + minutes * 60_000) return submitted;
    await setTimeout(Math.max(0, atMs - Date.now()));
    await client.track([await submit(sandbox.url)]);
  }
}

async function submit(url: string): Promise<string> {
  const headers = { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/submit_data`, {
    method: 'POST',
    headers,
    body: '{"data":"live"}',
  });
  return ((await response.json()) as { submission_id: string }).submission_id;
}
