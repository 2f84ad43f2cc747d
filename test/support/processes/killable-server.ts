import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { onTestFailed, onTestFinished } from 'vitest';
import { ConnectionError, DawatchClient, type TrackOptions } from '../../../src/client/index.ts';
import { freePort } from '../servers/free-port.ts';
import { until } from '../until.ts';
import { COMPILED, compile, MAIN, NODE_FLAGS } from './child-process.ts';

export const CRASH_API_KEY = 'crash-test-key-0123456789-0123456789';
export const CRASH_ADMIN_TOKEN = 'crash-test-admin-0123456789-0123456789';

export type KillableServer = Awaited<ReturnType<typeof prepareServer>>;

/** A server in a process that can be killed and started again on the same port and ledger. */
export async function prepareServer(folder: string, settings: Record<string, unknown>) {
  const port = await freePort();
  const config = join(folder, 'dawatch.yaml');
  const own = {
    server: { port },
    auth: { service_key: CRASH_API_KEY, admin_token: CRASH_ADMIN_TOKEN },
    database: join(folder, 'ledger.db'),
    log: { level: 'error' },
  };
  const all = { ...own, ...settings, server: { port, ...(settings.server ?? {}) } };
  writeFileSync(config, JSON.stringify(all));
  compile('serve', folder);
  const url = `http://127.0.0.1:${port}`;
  const server = killableProcess(['serve', '--config', config]);
  return {
    ...server,
    folder,
    /** The ledger. */
    file: all.database,
    url,
    client: new DawatchClient({ url, apiKey: CRASH_API_KEY }),
    /** Rejects if the process ends instead. */
    async listening(): Promise<void> {
      while (
        !(await fetch(`${url}/livez`).then(
          (response) => response.ok,
          () => false,
        ))
      ) {
        if (server.isGone())
          throw new Error(`the server ended: ${server.lines.slice(-3).join('\n')}`);
        await sleep(20);
      }
    },
  };
}

/** Tracks like a careful backend: repeats the request until it is acknowledged. */
export async function trackUntilAcknowledged(
  client: DawatchClient,
  ids: readonly string[],
  options: TrackOptions = {},
): Promise<void> {
  for (;;) {
    const isAcknowledged = await client.track(ids, options).then(
      () => true,
      (error) => {
        if (error instanceof ConnectionError) return false;
        throw error;
      },
    );
    if (isAcknowledged) return;
    await sleep(20);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

type StartOptions = {
  /** A command that replaces itself by the following one: ['prlimit', '--nofile=64']. */
  through?: readonly string[];
  /** Options for Node, before the file. */
  nodeOptions?: readonly string[];
  env?: Readonly<Record<string, string>>;
};

type LogLine = { event?: string; level?: number | string; [field: string]: unknown };

const SHOWN_LINES = 20;
const SHOWN_CHARS = 300;

/** `dawatch …` in a process that can be killed and started again; killed when the test ends. */
function killableProcess(args: readonly string[]) {
  let child: ChildProcess | undefined;
  const lines: string[] = [];
  const logLines: LogLine[] = [];
  const isGone = () => !child || child.exitCode !== null || child.signalCode !== null;
  let closed: Promise<void> | undefined;
  const kill = async () => {
    if (!child || isGone()) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  onTestFailed(() => {
    const last = lines.slice(-SHOWN_LINES).map((line) => line.slice(0, SHOWN_CHARS));
    if (last.length > 0) console.log(`${args[0]} logged last:\n${last.join('\n')}`);
  });
  return {
    /** Standard output of all its processes. */
    lines,
    /** Returns its log lines with this event name. */
    logged: (event: string): LogLine[] => logLines.filter((line) => line.event === event),
    /** Returns its log lines with one of these levels. */
    loggedAt: (...levels: string[]): LogLine[] =>
      logLines.filter(({ level }) => levels.includes(String(level))),
    pid: () => child?.pid,
    isGone,
    start({ through = [], nodeOptions = [], env = {} }: StartOptions = {}): void {
      const [command = '', ...rest] = [
        ...through,
        process.execPath,
        ...NODE_FLAGS,
        ...nodeOptions,
        MAIN,
        ...args,
      ];
      child = spawn(command, rest, {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env.PATH, ...COMPILED, ...env },
      });
      closed = new Promise((resolve) => child?.once('close', () => resolve()));
      for (const stream of [child.stdout, child.stderr])
        if (stream)
          createInterface(stream).on('line', (line) => {
            lines.push(line);
            logLines.push(...parsed(line));
          });
    },
    /** Sends SIGKILL, which also ends a suspended process. */
    kill,
    /**
     * Sends SIGTERM. Resolves with the exit code when the process has ended and all its output has
     * arrived.
     */
    async stop(): Promise<number | null | undefined> {
      if (!isGone()) child?.kill('SIGTERM');
      await closed;
      return child?.exitCode;
    },
    /**
     * Resolves with the exit code when the process has ended by itself and all its output has
     * arrived. Rejects if it still runs after two minutes.
     */
    async exited(): Promise<number | null | undefined> {
      await until(isGone);
      await closed;
      return child?.exitCode;
    },
    /** Suspends the process with all its resources. */
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    /** Returns its resident memory; undefined if the system does not show it. */
    residentMiB: () => residentMiB(child?.pid),
  };
}

function parsed(line: string): LogLine[] {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}

function residentMiB(pid: number | undefined): number | undefined {
  try {
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return kib === undefined ? undefined : Number(kib) / 1_024;
  } catch {
    return undefined;
  }
}

/** A worker in a process that can be killed and started again; killed when the test ends. */
export function prepareWorker(folder: string, name: string, settings: Record<string, unknown>) {
  const config = join(folder, `${name}.yaml`);
  const own = { log: { level: 'silent' } };
  writeFileSync(config, JSON.stringify({ ...own, ...settings }));
  compile('worker', folder);
  return killableProcess(['worker', '--config', config]);
}
