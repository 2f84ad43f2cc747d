import { execFile, execFileSync } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import type { SubmissionFilter } from '../../src/client/index.ts';
import type { Metric, Round, Row } from '../row.ts';
import { type Delays, longestDelays } from '../support/large-ledger/longest-delays.ts';
import {
  type BenchServer,
  largestMibOf,
  startProgram,
  startServer,
  temporaryFolder,
} from '../support/processes.ts';

const SUBMISSIONS = Number(process.env.BENCH_LARGE_LEDGER ?? 5_000_000);
const PRUNED = SUBMISSIONS / 5;
const PAGES = 20;
const POST_EVERY_MS = 20;
const START_MS = 20_000;
/** For the checkpoint of the log that the command has kept, and the maintenance of a minute. */
const MAINTENANCE_MS = 65_000;
const FILL = join(import.meta.dirname, '../support/large-ledger/fill-program.ts');
const MAIN = join(import.meta.dirname, '../../src/cli/main.js');

const SEARCHES: SubmissionFilter[] = [
  { status: ['finalized'] },
  { status: ['pending', 'failing'] },
  { metadata: { shop: 'berlin' } },
  { metadata: { shop: 'tokyo', customer: 'c7' } },
  { metadata: { order: 4711 } },
  { prefix: 'a' },
  { prefix: 'abc', metadata: { shop: 'berlin' } },
  { tracked_since: daysAgo(20), tracked_until: daysAgo(1) },
  { ended_since: daysAgo(20), metadata: { customer: 'c42' } },
];

/** What is measured, by the prefix of its names in a round. */
const OPERATIONS = {
  start: `the first ${START_MS / 1_000} s after a start`,
  list: `lists, ${PAGES} pages of each`,
  search: 'searches and counts',
  cold: 'the same lists, searches and counts while nothing of the ledger is in memory',
  overview: 'the overview',
  metrics: '/metrics',
  backup: '`dawatch backup` beside the server, and the minute after it',
  prune: `pruning ${PRUNED.toLocaleString('en')}, and returning the free space`,
} as const;
type Operation = keyof typeof OPERATIONS;

/**
 * A large ledger of finalized submissions: how long each operation blocks the event loop of a
 * server that is polling and tracking.
 */
export const row: Row = {
  rounds: 1,
  metrics: [
    ...(Object.keys(OPERATIONS) as Operation[]).map(delayOf),
    {
      what: `start to ready with ${SUBMISSIONS.toLocaleString('en')} submissions`,
      beside: '–',
      unit: 's',
      value: ({ readyS = 0 }) => readyS,
      context: ({ gib = 0 }) => `the server reads all ${gib.toFixed(1)} GiB`,
    },
    {
      what: 'the largest memory of the server at any moment of it',
      beside: '–',
      target: { max: 400 },
      unit: 'MiB',
      value: ({ mib = 0 }) => mib,
      context: () => '',
    },
    {
      what: '`dawatch vacuum` after it, with a stopped server',
      beside: '–',
      unit: 's',
      value: ({ vacuumS = 0 }) => vacuumS,
      context: () => '',
    },
    {
      what: 'bytes of the ledger per submission',
      beside: '–',
      unit: 'bytes',
      value: ({ bytes = 0 }) => bytes,
      context: ({ afterwards = 0 }) =>
        `with three values of metadata; the file is ${afterwards.toFixed(1)} GiB after pruning`,
    },
  ],
  async open() {
    const folder = temporaryFolder();
    const file = join(folder.path, 'ledger.db');
    // This process must stay small: starting a command stops a process of some gigabytes, and its
    // requests, for a tenth of a second.
    execFileSync(process.execPath, [FILL, folder.path, String(SUBMISSIONS)]);
    const upstream = await startProgram<{ url: string }>('support/upstream.ts', ['Pending']);
    const start = (settings: object) =>
      startServer(folder.path, {
        upstreams: { default: { url: upstream.hello.url, api_key: 'bench' } },
        ...settings,
      });
    return {
      /** Nothing has to be compiled or cached before, so round 0 measures nothing. */
      async round(index) {
        if (index === 0) return {};
        const { size } = statSync(file);
        const sizes = { bytes: size / SUBMISSIONS, gib: gibOf(file) };
        const server = await start({});
        const measured = await measureRunning(server, folder.path);
        await server.stop();
        const pruning = await start({ retention: { submissions_max: SUBMISSIONS - PRUNED } });
        const pruned = await measurePruning(pruning, file);
        await pruning.stop();
        const afterwards = gibOf(file);
        const from = performance.now();
        await dawatch(folder.path, 'vacuum');
        const vacuumS = (performance.now() - from) / 1_000;
        const mib = Math.max(measured.mib ?? 0, pruned.mib ?? 0);
        return {
          ...measured,
          ...pruned,
          ...sizes,
          vacuumS,
          mib,
          readyS: server.readyMs / 1_000,
          afterwards,
        };
      },
      async close() {
        await upstream.stop();
        folder.remove();
      },
    };
  },
};

function delayOf(operation: Operation): Metric {
  return {
    what: `longest response of /livez: ${OPERATIONS[operation]}`,
    beside: '–',
    target: { max: 250 },
    unit: 'ms',
    value: (round) => round[nameOf(operation, 'livezMs')] ?? 0,
    context(medians) {
      const of = (name: keyof Delays) => (medians[nameOf(operation, name)] ?? 0).toFixed(0);
      return `${of('tookS')} s; during that response the server ran for ${of('runMs')} ms and waited for a core for ${of('coreMs')} ms, and read ${of('readKib')} KiB (${of('faults')} page faults); the program that requests it ran for ${of('ownRunMs')} and waited for ${of('ownCoreMs')} ms; longest delay of a timer ${of('loopMs')} ms`;
    },
  };
}

/** The name of a measured value in a round. */
function nameOf(operation: Operation, value: string): string {
  return `${operation} ${value}`;
}

async function measureRunning(server: BenchServer, folder: string): Promise<Round> {
  const measure = measuring(server);
  const { client } = server;
  const posting = startPosting(server);
  const beside = async (...args: string[]) => {
    await dawatch(folder, ...args);
    await sleep(MAINTENANCE_MS);
  };
  await measure('start', () => sleep(START_MS));
  const list = async () => {
    for (const filter of [{}, ...SEARCHES.slice(0, 2)]) await readPages(server, filter);
  };
  const search = async () => {
    for (const filter of SEARCHES) {
      await readPages(server, filter);
      await countFirst(server, filter);
    }
  };
  await measure('list', list);
  await measure('search', search);
  dropFromMemory(join(folder, 'ledger.db'));
  await measure('cold', () => list().then(search));
  await measure('overview', () => repeat(50, () => client.overview()));
  await measure('metrics', () =>
    repeat(10, () => sleep(1_100).then(() => fetch(`${server.url}/metrics`))),
  );
  const copy = join(folder, 'copy');
  await measure('backup', () => beside('backup', copy));
  // Not measured: deleting gigabytes blocks this program for up to a second, and its request would
  // seem to wait for the server.
  rmSync(copy);
  await posting.stop();
  return measure.round;
}

async function measurePruning(server: BenchServer, file: string): Promise<Round> {
  // The start is measured before.
  await sleep(START_MS);
  const measure = measuring(server);
  const posting = startPosting(server);
  await measure('prune', async () => {
    while ((await endedOf(server)) > SUBMISSIONS - PRUNED) await sleep(1_000);
    while (hasMuchFree(file)) await sleep(1_000);
    await sleep(MAINTENANCE_MS);
  });
  await posting.stop();
  return measure.round;
}

/**
 * Whether the server still has free pages to return. It keeps a tenth, and pages become free
 * meanwhile.
 */
function hasMuchFree(file: string): boolean {
  const db = new Database(file, { readonly: true });
  const [free, pages] = ['freelist_count', 'page_count'].map((name) =>
    Number(db.pragma(name, { simple: true })),
  );
  db.close();
  return (free ?? 0) > Math.max(300, (pages ?? 0) / 9);
}

async function endedOf({ client }: BenchServer): Promise<number> {
  const { finalized, failed } = (await client.overview()).submissions;
  return finalized + failed;
}

/** Returns a function that measures one operation and adds the results to `round`. */
function measuring(server: BenchServer) {
  const round: Record<string, number> = { mib: 0 };
  const measure = async (operation: Operation, work: () => Promise<void>) => {
    const delays = await longestDelays(server, work);
    for (const [name, value] of Object.entries(delays)) round[nameOf(operation, name)] = value;
    round.mib = Math.max(round.mib ?? 0, largestMibOf(server.pid));
  };
  return Object.assign(measure, { round });
}

/** Tracks new submissions until it is stopped, one per request. */
function startPosting({ client }: BenchServer) {
  let isStopped = false;
  const posting = (async () => {
    while (!isStopped) {
      await client.track([crypto.randomUUID()]);
      await sleep(POST_EVERY_MS);
    }
  })();
  return {
    stop(): Promise<void> {
      isStopped = true;
      return posting;
    },
  };
}

async function readPages({ client }: BenchServer, filter: SubmissionFilter): Promise<void> {
  let cursor: string | null = null;
  for (let page = 0; page < PAGES; page++) {
    cursor = (await client.list({ ...filter, limit: 100, ...(cursor !== null && { cursor }) }))
      .next_cursor;
    if (cursor === null) return;
  }
}

/** Counts what one request examines; the client would send more until the count is complete. */
async function countFirst({ url, apiKey }: BenchServer, filter: SubmissionFilter): Promise<void> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter))
    query.set(name, name === 'metadata' ? JSON.stringify(value) : String(value));
  const response = await fetch(`${url}/v1/submission_count?${query}`, {
    headers: { 'x-api-key': apiKey },
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

/**
 * Removes a file from the memory of the system, as other files do on a machine whose memory is
 * smaller than the ledger.
 */
function dropFromMemory(file: string): void {
  execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']);
}

async function dawatch(folder: string, ...args: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [
    MAIN,
    ...args,
    '--config',
    join(folder, 'dawatch.yaml'),
  ]);
}

async function repeat(times: number, work: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < times; time++) await work();
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString();
}

function gibOf(file: string): number {
  return statSync(file).size / 2 ** 30;
}
