import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pkg from '../../package.json' with { type: 'json' };
import { DawatchClient } from '../../src/client/index.ts';
import { freePort } from '../../test/support/servers/free-port.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The options of `npm start`. */
const SERVER_FLAGS = pkg.scripts.start.split(' ').filter((word) => word.startsWith('--'));
const API_KEY = 'bench-key-0123456789-of-32-characters';
const ADMIN_TOKEN = 'bench-admin-0123456789-0123456789';
/** Limits so high that the load of a benchmark does not reach them. */
const NO_LIMITS = { requests_per_minute: 0, failed_authentications_per_minute: 0 };

/** Creates a temporary folder, which `remove` deletes. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'dawatch-bench-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Returns the CPU time in seconds and the memory in MiB of a process, as the operating system
 * reports them.
 */
export function costsOf(pid: number): { cpuS: number; mib: number } {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  return {
    cpuS: (Number(stat[11]) + Number(stat[12])) / 100,
    mib: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024,
  };
}

export type BenchServer = {
  url: string;
  pid: number;
  apiKey: string;
  adminToken: string;
  client: DawatchClient;
  admin: DawatchClient;
  /** Milliseconds from the start of the process until it reported that it is ready. */
  readyMs: number;
  stop(): Promise<void>;
};

/**
 * Starts the whole product as users do. `settings` are merged with a ledger in `folder`, a free
 * port and no limits. `program`: the file that `dawatch` runs, by default that of the sources.
 */
export async function startServer(
  folder: string,
  settings: Record<string, unknown>,
  program = join(ROOT, 'src/cli/main.js'),
): Promise<BenchServer> {
  const port = await freePort();
  const file = join(folder, 'dawatch.yaml');
  const defaults = {
    server: { port },
    auth: { service_key: API_KEY, admin_token: ADMIN_TOKEN },
    database: join(folder, 'ledger.db'),
    limits: NO_LIMITS,
    log: { level: 'warn' },
  };
  writeFileSync(file, JSON.stringify({ ...defaults, ...settings }));
  const startedAt = performance.now();
  const child = spawn(process.execPath, [...SERVER_FLAGS, program, 'serve', '--config', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    await sleep(5);
  }
  return {
    url,
    pid: pidOf(child),
    apiKey: API_KEY,
    adminToken: ADMIN_TOKEN,
    client: new DawatchClient({ url, apiKey: API_KEY }),
    admin: new DawatchClient({ url, token: ADMIN_TOKEN }),
    readyMs: performance.now() - startedAt,
    stop: () => end(child),
  };
}

/**
 * Starts a worker with the settings of the server in this folder. Resolves when the server sends
 * jobs to it.
 */
export async function startWorker(folder: string, { client }: BenchServer) {
  const args = [join(ROOT, 'src/cli/main.js'), 'worker', '--config', join(folder, 'dawatch.yaml')];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  while ((await client.overview()).workers !== 1) {
    if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}`);
    await sleep(50);
  }
  return { pid: pidOf(child), stop: () => end(child) };
}

/**
 * Starts a program of the benchmark. It prints one line of JSON when it is ready, which is returned
 * as `hello`.
 */
export async function startProgram<Hello>(path: string, args: readonly unknown[]) {
  const child = spawn(process.execPath, [join(ROOT, 'bench', path), JSON.stringify(args)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`${path} ended with ${code}`))),
  ]);
  return { hello: JSON.parse(String(line)) as Hello, pid: pidOf(child), stop: () => end(child) };
}

/** Runs a program of the benchmark to its end and returns its last line, which is JSON. */
export async function runProgram<Result>(path: string, args: readonly unknown[]): Promise<Result> {
  const child = spawn(process.execPath, [join(ROOT, 'bench', path), JSON.stringify(args)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${path} ended with ${code}`);
  return JSON.parse(printed.trim().split('\n').at(-1) ?? '') as Result;
}

/** Starts a redis-server with an append-only file, as recommended for queues. */
export async function startRedis(folder: string) {
  const port = await freePort();
  const options = [
    '--save',
    '',
    '--appendonly',
    'yes',
    '--appendfsync',
    'everysec',
    '--loglevel',
    'warning',
  ];
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...options],
    {
      stdio: 'ignore',
    },
  );
  return { url: `redis://127.0.0.1:${port}`, pid: pidOf(child), stop: () => end(child) };
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    (response) => response.ok,
    () => false,
  );
}

function pidOf({ pid }: ChildProcess): number {
  if (pid === undefined) throw new Error('a process could not be started');
  return pid;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill();
  await ended;
}
