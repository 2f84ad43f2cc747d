// npm run bench:live: one scenario in real time, over real HTTP and through the whole product, beside the same one in virtual
// time; both must agree. The upstream's clock runs ten times faster than life, and so does the asking.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startApp } from '../../src/app.ts';
import { DawatchClient } from '../../src/client/client.ts';
import { systemClock } from '../../src/clock.ts';
import { loadConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import type { Recorded } from '../../src/monitor/ports.ts';
import { Status } from '../../src/monitor/submission.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { sandboxWorld } from './sandbox-world.ts';
import { LATENCY_MS, simulate } from './simulate.ts';
import { summarize } from './summary.ts';

const SPEED = 10;
const SUBMISSIONS = 1_200;
const EVERY_MS = 100;
const AGREEMENT = 0.2;
/** Virtual runs, each with another seed and begun elsewhere between two blocks: nobody chooses that in real time. */
const VIRTUAL_RUNS = 20;
const BLOCK_MS = 20_000 / SPEED;

type Measured = { requests: number; meanS: number };

const upstream = { seed: 1, speed: SPEED };
const pacing = { min_interval_s: 1 / SPEED, max_interval_s: 60 / SPEED };
const budget = { requests: 50, per_s: 1, concurrency: 32 };
const virtual = runVirtual();
const live = await runLive();
console.log(`${SUBMISSIONS} submissions, one every ${EVERY_MS} ms, blocks every 2 s, final after 4 s`);
compare('requests each', ({ requests }) => requests, '');
compare('mean lag', ({ meanS }) => meanS, ' s');

function compare(what: string, of: (measured: Measured) => number, unit: string): void {
  const runs = virtual.map(of);
  const mean = meanOf(runs);
  const ratio = of(live) / mean;
  const agrees = Math.abs(ratio - 1) <= AGREEMENT;
  const shown = (value: number) => `${value.toFixed(3)}${unit}`;
  console.log(
    `  ${agrees ? 'OK ' : 'NOT'} ${what}: ${shown(of(live))} in real time, ${shown(mean)} in virtual time (${shown(Math.min(...runs))} to ${shown(Math.max(...runs))} in ${runs.length} runs), ratio ${ratio.toFixed(2)}`,
  );
  if (!agrees) process.exitCode = 1;
}

function runVirtual(): Measured[] {
  const settings = { minIntervalMs: 1_000 * pacing.min_interval_s, maxIntervalMs: 1_000 * pacing.max_interval_s };
  return Array.from({ length: VIRTUAL_RUNS }, (_, run) => {
    const begin = (run * BLOCK_MS) / VIRTUAL_RUNS;
    return summarize(
      simulate({
        world: sandboxWorld({ ...upstream, seed: run + 1 }),
        arrivals: Array.from({ length: SUBMISSIONS }, (_, index) => begin + index * EVERY_MS),
        budget: { requests: budget.requests, perMs: 1_000 * budget.per_s, concurrency: budget.concurrency },
        policy: cohortPacing(settings),
        seed: run + 1,
        // Where the sandbox looks: it waits first.
        readAfter: 1,
      }),
    );
  });
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function runLive(): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-live-'));
  const sandbox = await startSandbox({
    // The latency is that of the virtual upstream; the sandbox's speed would shorten it.
    options: { ...upstream, latencyMs: SPEED * LATENCY_MS.least, latencyJitterMs: SPEED * LATENCY_MS.jitter },
  });
  const lagsMs: number[] = [];
  let requests = 0;
  const recorded = ({ observation, outcome, submission }: Recorded) => {
    if (outcome.change?.status !== Status.finalized) return;
    const { at } = observation;
    lagsMs.push(at - (sandbox.model.finalizedAt(submission.submissionId, at) ?? at));
  };
  const apiKey = 'a key for this run only';
  const env = {
    DAWATCH_UPSTREAM_URL: sandbox.url,
    DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
    DAWATCH_DATABASE: join(folder, 'dawatch.db'),
    DAWATCH_PORT: '0',
    DAWATCH_API_KEY: apiKey.replaceAll(' ', '-'),
  };
  const { config } = loadConfig({ file: null, env });
  const app = await startApp({
    config: { ...config, pacing, upstreams: { default: { ...config.upstreams.default, budget } } },
    log: createLog({ ...config.log, level: 'silent' }, process.stderr),
    clock: systemClock,
    random: Math.random,
    onNewKey: () => undefined,
    listener: { recorded },
  });
  try {
    const client = new DawatchClient({ url: app.url, apiKey: env.DAWATCH_API_KEY });
    const startedAt = Date.now();
    for (let made = 0; made < SUBMISSIONS; made++) {
      await client.track([await submit(sandbox.url)]);
      await setTimeout(Math.max(0, startedAt + (made + 1) * EVERY_MS - Date.now()));
    }
    while (lagsMs.length < SUBMISSIONS) await setTimeout(10);
    requests = sandbox.stats().requests;
  } finally {
    await app.close();
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return { requests: requests / SUBMISSIONS, meanS: meanOf(lagsMs) / 1_000 };
}

async function submit(url: string): Promise<string> {
  const headers = { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/submit_data`, { method: 'POST', headers, body: '{"data":"live"}' });
  return ((await response.json()) as { submission_id: string }).submission_id;
}
