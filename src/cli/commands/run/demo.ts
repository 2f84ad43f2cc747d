import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { DawatchClient } from '../../../client/index.ts';
import { loadConfig } from '../../../config/load.ts';
import { Status } from '../../../domain/submission.ts';
import { systemClock } from '../../../platform/system-clock.ts';
import type { Sandbox } from '../../../sandbox/server.ts';
import type { RecordedObservation } from '../../../watch/ports.ts';
import { CommandError } from '../../exit.ts';
import { createDemoReport } from '../../output/demo-report.ts';

/** Speed of the upstream's clock: a slot lasts 2 s instead of 20 s. */
const SPEED = 10;
const STREAM_MS = 45_000;

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('Run a sandbox upstream, the server and a stream of submissions on this machine for about a minute.')
    .option('--submissions <count>', 'number of submissions', wholeNumber, 150)
    .option('--seed <number>', 'seed of the sandbox; the same seed reproduces the same run', wholeNumber, 7)
    .action(async ({ submissions, seed }: { submissions: number; seed: number }) => {
      const finished = await runDemo(submissions, seed);
      if (!finished) throw new CommandError('interrupted', 130);
    });
}

/** Runs the demo. Returns false if it was interrupted. */
async function runDemo(total: number, seed: number): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-demo-'));
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const { startSandbox } = await import('../../../sandbox/server.ts');
  const sandbox = await startSandbox({
    options: { seed, speed: SPEED, errorRate: 0.05, latencyMs: 200, latencyJitterMs: 300 },
  });
  try {
    return await watchStream({ sandbox, folder, total, stop: interrupted.signal });
  } finally {
    await sandbox.close();
    rmSync(folder, { recursive: true, force: true });
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

async function watchStream(demo: {
  sandbox: Sandbox;
  folder: string;
  total: number;
  stop: AbortSignal;
}): Promise<boolean> {
  const { sandbox, total, stop } = demo;
  const report = createDemoReport({ total, sandbox, stream: process.stdout });
  const allFinal = Promise.withResolvers<void>();
  let left = total;
  const recorded = (entry: RecordedObservation) => {
    report.recorded(entry);
    const isNew = entry.previousStatus !== Status.finalized && entry.submission.status === Status.finalized;
    if (isNew && --left === 0) allFinal.resolve();
  };

  const apiKey = randomBytes(16).toString('hex');
  // Ignores the user's settings, which belong to another upstream.
  const { config } = loadConfig({
    file: null,
    env: {
      DAWATCH_UPSTREAM_URL: sandbox.url,
      DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
      DAWATCH_DATABASE: join(demo.folder, 'dawatch.db'),
      DAWATCH_PORT: '0',
      DAWATCH_API_KEY: apiKey,
    },
  });
  // Scales the price of lag with the clock, so that polls are as frequent relative to slots as in production.
  const pacing = { lag_price: SPEED };
  const [{ startApp }, { createLog }] = await Promise.all([
    import('../../../app.ts'),
    import('../../../logging/logger.ts'),
  ]);
  const log = createLog({ ...config.log, level: 'silent' }, process.stderr);
  const app = await startApp({
    config: { ...config, pacing },
    log,
    clock: systemClock,
    random: Math.random,
    onNewKey: () => undefined,
    listener: { recorded },
  });
  const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
  try {
    report.started(app.url, apiKey);
    const client = new DawatchClient({ url: app.url, apiKey });
    const submitting = submitStream(sandbox.url, client, total, stop);
    await Promise.race([Promise.all([submitting, allFinal.promise]), stopped]);
    return left === 0;
  } finally {
    report.stopped();
    await app.close();
    if (left === 0) report.summary();
  }
}

/** Acts as a backend service: submits data to the upstream and tracks the returned ids. */
async function submitStream(
  upstreamUrl: string,
  client: DawatchClient,
  total: number,
  stop: AbortSignal,
): Promise<void> {
  for (let made = 0; made < total && !stop.aborted; made++) {
    const response = await fetch(`${upstreamUrl}/v1/submit_data`, {
      method: 'POST',
      headers: { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' },
      body: JSON.stringify({ data: `demo ${made}` }),
    });
    const { submission_id } = (await response.json()) as { submission_id: string };
    await client.track([submission_id], { metadata: { demo: made } });
    await new Promise((resolve) => setTimeout(resolve, STREAM_MS / total));
  }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new InvalidArgumentError('Expected a whole number from 1 to 99999.');
  return Number(text);
}
