// npm run bench:live: one scenario in real time, over real HTTP and through the whole product, beside the same one in virtual
// time. The upstream's clock runs ten times faster than life, and so does the asking.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { startApp } from '../src/app.ts';
import { DawatchClient } from '../src/client/client.ts';
import { systemClock } from '../src/clock.ts';
import { loadConfig } from '../src/config.ts';
import { createLog } from '../src/log.ts';
import { cohortPacing } from '../src/monitor/cohort-policy.ts';
import type { Recorded } from '../src/monitor/ports.ts';
import { Status } from '../src/monitor/submission.ts';
import { startSandbox } from '../src/sandbox/server.ts';
import { sandboxWorld } from './sandbox-world.ts';
import { LATENCY_MS, simulate } from './simulate.ts';
import { summarize } from './summary.ts';

const SPEED = 10;
const SUBMISSIONS = 1_200;
const EVERY_MS = 100;
const AGREEMENT = 0.2;

const upstream = { seed: 1, speed: SPEED };
const pacing = { min_interval_s: 1 / SPEED, max_interval_s: 60 / SPEED };
const [live, virtual] = [await runLive(), runVirtual()];
console.log(`${SUBMISSIONS} submissions, one every ${EVERY_MS} ms, blocks every 2 s, final after 4 s`);
console.log(`  in real time     ${live.requests.toFixed(2)} requests each, mean lag ${live.meanS.toFixed(2)} s`);
console.log(`  in virtual time  ${virtual.requests.toFixed(2)} requests each, mean lag ${virtual.meanS.toFixed(2)} s`);
const apart = Math.abs(live.requests / virtual.requests - 1);
console.log(`  ${apart <= AGREEMENT ? '✓' : '✗'} requests agree within ${Math.ceil(100 * apart)} %`);
if (apart > AGREEMENT) process.exitCode = 1;

function runVirtual() {
  const settings = { minIntervalMs: 1_000 * pacing.min_interval_s, maxIntervalMs: 1_000 * pacing.max_interval_s };
  const arrivals = Array.from({ length: SUBMISSIONS }, (_, index) => index * EVERY_MS);
  const budget = { requests: 50, perMs: 1_000, concurrency: 32 };
  return summarize(
    simulate({ world: sandboxWorld(upstream), arrivals, budget, policy: cohortPacing(settings), seed: 1 }),
  );
}

async function runLive(): Promise<{ requests: number; meanS: number }> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-live-'));
  const sandbox = await startSandbox({
    options: { ...upstream, latencyMs: LATENCY_MS.least, latencyJitterMs: LATENCY_MS.jitter },
  });
  const lagsMs: number[] = [];
  let polls = 0;
  const recorded = ({ observation, outcome, submission }: Recorded) => {
    if (outcome.change?.status !== Status.finalized) return;
    const { at } = observation;
    lagsMs.push(Math.max(0, at - (sandbox.model.finalizedAt(submission.submissionId, at) ?? at)));
    polls += submission.polls;
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
    config: { ...config, pacing },
    log: createLog({ level: 'silent', format: 'json' }, process.stderr),
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
    while (lagsMs.length < SUBMISSIONS) await setTimeout(100);
  } finally {
    await app.close();
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return { requests: polls / SUBMISSIONS, meanS: lagsMs.reduce((sum, ms) => sum + ms, 0) / SUBMISSIONS / 1_000 };
}

async function submit(url: string): Promise<string> {
  const headers = { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/submit_data`, { method: 'POST', headers, body: '{"data":"live"}' });
  return ((await response.json()) as { submission_id: string }).submission_id;
}
