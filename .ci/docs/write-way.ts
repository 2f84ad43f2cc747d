// Measures which files execute from `POST /v1/submissions` to the delivered webhook, and writes
// them into CONTRIBUTING.md: V8 counts the calls of each function while one submission is tracked
// over HTTP, polled at a sandbox, and reported to a receiver, all in this process.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Session } from 'node:inspector';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { startApp } from '../../src/app.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { createLog } from '../../src/operations/logging/logger.ts';
import { eventPacing } from '../../src/pacing/index.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { REQUEST_HOOKS } from '../../src/wiring/server.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { withPart } from './between.ts';

const KEY = 'a-service-key-for-this-measurement';
const SOURCE = `${pathToFileURL('src').href}/`;

/** The steps of the way, each ended by something that can be observed. */
const STEPS = [
  ['Intake', 'until the caller has the response 202'],
  ['Poll', 'until a result of the upstream arrives'],
  ['Commit', 'until the final status is in the ledger'],
  ['Delivery', 'until the receiver has the webhook'],
] as const;

/** What continues in a later turn of the event loop, or after a remote party has responded. */
const HAND_OVERS = [
  ['a queue', 'submissions/intake.ts', 'requests that arrive together share a commit'],
  ['a timer', 'polling/poll-loop.ts', 'the submission is polled when it is due'],
  ['the network', 'polling/upstreams.ts', 'the upstream responds'],
  ['the next turn', 'polling/poll-loop.ts', 'results that arrive together share a commit'],
  ['the next turn', 'notifications/dispatcher.ts', 'one pass serves all destinations'],
] as const;

const session = new Session();
session.connect();

type Coverage = {
  result: {
    url: string;
    functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
  }[];
};

function post<T>(method: string, params: object = {}): T {
  let answer: T | undefined;
  session.post(method, params, (error, result) => {
    if (error) throw error;
    answer = result as T;
  });
  // A session of the same thread answers at once.
  return answer as T;
}

/** Returns the files of src with a function that was called since the previous call. */
function executed(): Set<string> {
  const { result } = post<Coverage>('Profiler.takePreciseCoverage');
  const files = result.flatMap(({ url, functions }) => {
    if (!url.startsWith(SOURCE) || url.startsWith(`${SOURCE}sandbox/`)) return [];
    // The module itself, which is executed when it is loaded, is a function that begins at 0.
    const isCalled = functions.some(
      ({ ranges: [range] }) => range && range.startOffset > 0 && range.count > 0,
    );
    return isCalled ? [relative('.', new URL(url).pathname)] : [];
  });
  return new Set(files);
}

/** Starts a server over a sandbox, and a receiver. */
async function open(deps: {
  clock: Clock;
  onPolled?: () => void;
  onFinal?: () => void;
  onWebhook?: () => void;
}) {
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-way-'));
  const sandbox = await startSandbox({ options: { speed: 200 } });
  const receiver = createServer((request, response) => {
    deps.onWebhook?.();
    request.resume();
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const env = { DAWATCH_UPSTREAM_URL: sandbox.url, DAWATCH_UPSTREAM_API_KEY: 'sandbox-key' };
  const { config } = loadConfig({ env });
  const webhooks = { ...config.webhooks, allow: ['127.0.0.0/8'], allow_http: true };
  const app = await startApp({
    config: {
      ...config,
      database: join(folder, 'ledger.db'),
      server: { ...config.server, host: '127.0.0.1', port: 0 },
      auth: { ...config.auth, service_key: KEY },
      webhooks,
    },
    log: createLog(config.log, { write: () => undefined }),
    clock: deps.clock,
    random: () => 0.5,
    // A second of the sandbox is a second for 200 submissions.
    policy: () => eventPacing({ lagPrice: 1_000 }),
    onNewKey: () => undefined,
    listener: {
      polled: () => deps.onPolled?.(),
      finalized: () => deps.onFinal?.(),
    },
  });
  return {
    app,
    sandbox,
    callback: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    async close() {
      await app.close();
      await sandbox.close();
      receiver.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Returns the files of each step, each file at the first step that executes it. */
async function measureWay(): Promise<string[][]> {
  const steps: Set<string>[] = STEPS.map(() => new Set());
  const add = (step: number) => {
    for (const file of executed()) steps[step]?.add(file);
  };
  const { promise: delivered, resolve } = Promise.withResolvers<void>();
  let isAccepted = false;
  const world = await open({
    clock: systemClock,
    onPolled: () => isAccepted && add(1),
    onFinal: () => add(2),
    onWebhook: () => {
      add(3);
      resolve();
    },
  });
  // The server has started, and does nothing.
  await setTimeout(500);
  executed();
  const body = {
    submission_id: world.sandbox.model.submit('some data', Date.now()),
    callback_url: world.callback,
  };
  const response = await fetch(`${world.app.url}/v1/submissions`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
  add(0);
  isAccepted = true;
  await delivered;
  await world.close();
  const seen = new Set<string>();
  return steps.map((files) => {
    const first = [...files].filter((file) => !seen.has(file)).sort();
    for (const file of first) seen.add(file);
    return first;
  });
}

post('Profiler.enable');
post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const way = await measureWay();
const onWay = new Set(way.flat());
const isPolicy = (file: string) => file.startsWith('src/pacing/');
const policies = [...onWay].filter(isPolicy).length;

/** Writes files by folder: `polling/` poll-loop, scheduler. */
function listOf(files: readonly string[]): string {
  const folders = Map.groupBy(files, (file) => dirname(relative('src', file)));
  return [...folders]
    .map(([folder, all]) => {
      const names = all.map((file) => basename(file, '.ts')).join(', ');
      return folder === '.' ? `\`src/\` ${names}` : `\`${folder}/\` ${names}`;
    })
    .join(' · ');
}

const text = `
${onWay.size} files of \`src\` execute between the request and the webhook, ${policies} of them in \`src/pacing\`.
\`npm run docs:way\` lists them. A later turn of the event loop continues after

${HAND_OVERS.map(([what, by, why], index) => `${index + 1}. ${what}, \`${by}\`: ${why}`).join('\n')}

The hooks of every request:

${REQUEST_HOOKS.map(([name, why], index) => `${index + 1}. \`${name}\`: ${why}`).join('\n')}

`;

const PAGE = 'CONTRIBUTING.md';
const page = readFileSync(PAGE, 'utf8');
writeFileSync(PAGE, withPart(page, 'way', text));
for (const [step, [name, end]] of STEPS.entries())
  console.log(`${name}, ${end}: ${listOf(way[step] ?? [])}`);
process.exit();
