import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { pause } from '../client/backoff.ts';
import { DawatchClient } from '../client/index.ts';
import { systemClock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Sandbox } from '../sandbox/server.ts';
import { dataOf } from '../submissions/classify.ts';
import { FinalitySum } from '../submissions/ledger-stats.ts';
import type { RecordedChange } from '../submissions/store-results.ts';
import { Status } from '../submissions/submission.ts';
import { requests } from '../submissions/wait-command.ts';
import { loadConfig } from '../wiring/settings.ts';
import { CommandError } from './exit.ts';
import { createProgress, paintFor } from './output.ts';

/** The lag is exact, because the sandbox knows the time of finality. */
export function createDemoReport(demo: {
  total: number;
  sandbox: Sandbox;
  stream: NodeJS.WriteStream;
}) {
  const { total, sandbox, stream } = demo;
  const paint = paintFor(stream);
  const print = (text: string) => stream.write(`${text}\n`);
  const progress = createProgress(total, 'finalized', stream);
  const lagsMs: number[] = [];
  const finalityMs: number[] = [];
  const withNode = new FinalitySum();
  const withoutNode = new FinalitySum();
  const all = () => FinalitySum.of([withNode, withoutNode]);

  return {
    started(url: string, apiKey: string): void {
      print(paint('bold', `tracking ${total} submissions made over 45 s`));
      print(
        `upstream: a sandbox at ${sandbox.url}, with a clock 10 times faster than real time (a block every 2 s, sometimes none,`,
      );
      print(
        '          final about 0.3 s after the next block); 5 % of its sending attempts fail at first',
      );
      print(
        '          every second submission is tracked with the upstream "with-node": the same sandbox, and a node of its chain',
      );
      print(`dawatch:  ${url}, with the dashboard; sign in with the key ${apiKey}\n`);
    },
    recorded({ at, previousStatus, result, submission }: RecordedChange): void {
      const { change } = result;
      if (!change) return;
      if (change.status === Status.failing)
        progress.line(
          `${paint('yellow', '! failing  ')} ${submission.submissionId}  upstream error: ${escapeText(submission.error ?? '')}; polling continues`,
        );
      if (change.status !== Status.finalized || previousStatus === Status.finalized) return;
      const tookMs = at - submission.trackedAt;
      const finalAt = sandbox.model.finalizedAt(submission.submissionId, at) ?? at;
      lagsMs.push(Math.max(0, at - finalAt));
      const sum = submission.upstream === WITH_NODE ? withNode : withoutNode;
      sum.add({ ...submission, at, detection: null });
      finalityMs.push(tookMs);
      const block = dataOf(change.envelope)?.block_number;
      progress.line(
        `${paint('green', '✓ finalized')} ${submission.submissionId}  block ${escapeText(String(block))}  ${seconds(tookMs)} to finality  ${requests(submission.polls)}`,
      );
      progress.advance(all().finalized, `requests per submission: ${requestsText(all())}`);
    },
    stopped: () => progress.stop(),
    summary() {
      const fixedPolls = finalityMs.map((ms) => Math.floor(ms / 500) + 1);
      print('');
      print(
        `submissions             ${lagsMs.length}, all finalized, each kept with its history in SQLite`,
      );
      print(`time to finality        ${spread(finalityMs)}`);
      print(
        `detection lag           ${spread(lagsMs)}  after the upstream first reported Finalized`,
      );
      print(
        `requests per submission ${requestsText(all())}  (polling every 5 s of upstream time: ${(sum(fixedPolls) / fixedPolls.length).toFixed(2)})`,
      );
      print(
        `  without a node        ${requestsText(withoutNode)}  (while dawatch learns when submissions become final)`,
      );
      print(`  with a node           ${requestsText(withNode)}  (which announces final blocks)`);
      print(`\n${paint('bold', 'Use your own upstream:')}`);
      print('  DAWATCH_UPSTREAM_URL=https://… DAWATCH_UPSTREAM_API_KEY=… npx dawatch serve');
      print(
        '  npx dawatch track <submission id> --wait     (in another terminal, with the key that serve printed)',
      );
    },
    ended(url: string, keep: boolean): void {
      const text = keep
        ? `The dashboard stays at ${url}, with the key above, until Ctrl-C.`
        : 'The dashboard ends with the demo; `npx dawatch demo --keep` keeps it.';
      print(`\n${text}`);
    },
  };
}

function spread(ms: readonly number[]): string {
  const sorted = ms.toSorted((a, b) => a - b);
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return `mean ${seconds(sum(ms) / Math.max(1, ms.length))}, p50 ${seconds(at(0.5))}, p99 ${seconds(at(0.99))}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function requestsText({ requestsPerSubmission }: FinalitySum): string {
  return requestsPerSubmission?.toFixed(2) ?? 'too few submissions';
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** Speed of the upstream's clock: a slot lasts 2 s instead of 20 s. */
const SPEED = 10;
const STREAM_MS = 45_000;
/** The upstream with a node of the chain: half of the submissions show what a node is worth. */
const WITH_NODE = 'with-node';

export function addDemo(program: Command): void {
  program
    .command('demo')
    .description('Run a sandbox, the server and 150 submissions for about a minute.')
    .option('--submissions <count>', 'number of submissions', wholeNumber, 150)
    .option(
      '--seed <number>',
      'seed of the sandbox; the same seed reproduces the same run',
      wholeNumber,
      7,
    )
    .option('--keep', 'keep the server and its dashboard running after the end, until Ctrl-C')
    .action(async (options: Options) => {
      const finished = await runDemo(options);
      if (!finished) throw new CommandError('interrupted', 130);
    });
}

type Options = { submissions: number; seed: number; keep?: boolean };

/** Runs the demo. Returns false if it was interrupted before all submissions were final. */
async function runDemo({ submissions: total, seed, keep = false }: Options): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-demo-'));
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const { startSandbox } = await import('../sandbox/server.ts');
  const sandbox = await startSandbox({
    options: { seed, speed: SPEED, errorRate: 0.05, latencyMs: 200, latencyJitterMs: 300 },
  });
  try {
    return await watchStream({ sandbox, folder, total, keep, stop: interrupted.signal });
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
  keep: boolean;
  stop: AbortSignal;
}): Promise<boolean> {
  const { sandbox, total, keep, stop } = demo;
  const report = createDemoReport({ total, sandbox, stream: process.stdout });
  const allFinal = Promise.withResolvers<void>();
  let left = total;
  const recorded = (entry: RecordedChange) => {
    report.recorded(entry);
    const isNew =
      entry.previousStatus !== Status.finalized && entry.submission.status === Status.finalized;
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
      DAWATCH_SERVICE_KEY: apiKey,
    },
  });
  // Polls are then as frequent relative to slots as in production.
  config.upstreams.default.lag_price = SPEED;
  const upstream = structuredClone(config.upstreams.default);
  upstream.chain.urls = [sandbox.url.replace('http:', 'ws:')];
  config.upstreams[WITH_NODE] = upstream;
  const [{ startApp }, { createLog }] = await Promise.all([
    import('../app.ts'),
    import('../operations/logging/logger.ts'),
  ]);
  const log = createLog({ level: 'silent' }, process.stderr);
  const app = await startApp({
    config,
    log,
    clock: systemClock,
    random: Math.random,
    onNewKey: () => undefined,
    listener: { recorded },
  });
  const stopped = new Promise<void>((resolve) =>
    stop.addEventListener('abort', () => resolve(), { once: true }),
  );
  try {
    report.started(app.url, apiKey);
    const client = new DawatchClient({ url: app.url, apiKey });
    const submitting = submitStream(sandbox.url, client, total, stop);
    await Promise.race([Promise.all([submitting, allFinal.promise]), stopped]);
    report.stopped();
    if (left > 0) return false;
    report.summary();
    report.ended(app.url, keep);
    if (keep) await stopped;
    return true;
  } finally {
    await app.close();
  }
}

async function submitStream(
  upstreamUrl: string,
  client: DawatchClient,
  total: number,
  stop: AbortSignal,
): Promise<void> {
  for (let index = 0; index < total && !stop.aborted; index++) {
    const response = await fetch(`${upstreamUrl}/v1/submit_data`, {
      method: 'POST',
      headers: { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' },
      body: JSON.stringify({ data: `demo ${index}` }),
    });
    const { submission_id } = (await response.json()) as { submission_id: string };
    const upstream = index % 2 === 0 ? 'default' : WITH_NODE;
    await client.track([submission_id], { upstream, metadata: { demo: index } });
    if (index + 1 < total) await pause(STREAM_MS / total, stop);
  }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw new InvalidArgumentError('Expected a whole number from 1 to 99999.');
  return Number(text);
}
