import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { STEP_MS } from '../patience.ts';
import { freePort } from '../servers/free-port.ts';

export type RedisServer = {
  url: string;
  port: number;
  /** Suspends the process, which keeps its connections open, until `resume`. */
  pause(): void;
  resume(): void;
  /** Kills the process, as in a crash. */
  kill(): Promise<void>;
  /** Starts it again on the same port; empty without an append-only file. */
  restart(): Promise<void>;
  /** Idempotent. */
  close(): Promise<void>;
};

type RedisOptions = {
  password?: string;
  /** Whether it writes an append-only file, and so keeps its data over a crash. */
  keeps?: boolean;
  /** Further options of its command line. */
  settings?: Record<string, string>;
};

const TRIES = 5;

/**
 * For `describe.skipIf`: without redis-server, a developer's machine skips the tests that require
 * it. CI skips nothing, so they fail there at `startRedis`.
 */
export function isRedisMissing(): boolean {
  if (process.env.CI || spawnSync('redis-server', ['--version']).status === 0) return false;
  console.warn(
    'SKIPPED: redis-server is not on the PATH; install it to run the tests that need Redis.',
  );
  return true;
}

/** Starts a redis-server for this test, stopped when the test ends. */
export async function redisForTest(options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.close());
  return server;
}

/** Starts a redis-server on a free port. The caller closes it. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const { password } = options;
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-redis-'));
  let port = 0;
  let child: ChildProcess | undefined;
  // Another process may take a free port before it is used.
  for (let tried = 1; child === undefined; tried += 1) {
    port = await freePort();
    child = await run(port, folder, options).catch((error: unknown) => {
      if (tried < TRIES && error instanceof PortTakenError) return undefined;
      rmSync(folder, { recursive: true, force: true });
      throw error;
    });
  }
  let running: ChildProcess = child;
  const kill = () => killed(running);
  return {
    url: `redis://${password === undefined ? '' : `:${encodeURIComponent(password)}@`}127.0.0.1:${port}`,
    port,
    pause: () => void running.kill('SIGSTOP'),
    resume: () => void running.kill('SIGCONT'),
    kill,
    async restart() {
      await kill();
      running = await run(port, folder, options);
    },
    async close() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

class PortTakenError extends Error {
  override readonly name = 'PortTakenError';
}

function run(port: number, folder: string, options: RedisOptions): Promise<ChildProcess> {
  const { password, keeps = false, settings: more = {} } = options;
  const kept = { save: '', appendonly: keeps ? 'yes' : 'no', dir: folder };
  const settings = { port, bind: '127.0.0.1', ...kept, ...secured(password), ...more };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  return runRedis(args, port);
}

/** Starts the program redis-server; resolves once it responds at a port without TLS. */
async function runRedis(args: readonly string[], port: number): Promise<ChildProcess> {
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
  // An aborted test run leaves no server behind.
  const killAtExit = () => child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('close', () => process.off('exit', killAtExit));
  const failure = new Promise<never>((_resolve, reject) => {
    child.once('error', (cause) =>
      reject(new Error('redis-server cannot be started; is it installed?', { cause })),
    );
    child.once('close', () =>
      reject(
        output.includes('Address already in use')
          ? new PortTakenError(output)
          : new Error(`redis-server ended: ${output}`),
      ),
    );
  });
  try {
    await Promise.race([failure, waitUntilReady(port)]);
  } catch (error) {
    await killed(child);
    throw error;
  }
  // From here on, the test may stop it.
  failure.catch(() => undefined);
  return child;
}

function secured(password: string | undefined): Record<string, string> {
  return password === undefined ? {} : { requirepass: password };
}

/** Kills a process; SIGKILL also ends a suspended one. */
async function killed(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

/** A server with a password also responds to PING, with an error. */
async function waitUntilReady(port: number): Promise<void> {
  const until = performance.now() + STEP_MS;
  while (!/^(?:\+PONG|-NOAUTH)/.test(await ping(port))) {
    if (performance.now() > until) throw new Error('redis-server does not answer');
    await sleep(10);
  }
}

function ping(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket
      .setTimeout(1_000, () => socket.destroy())
      .once('data', (bytes) => {
        resolve(bytes.toString());
        socket.destroy();
      })
      .once('error', () => socket.destroy())
      .once('close', () => resolve(''));
  });
}

/** Starts a node of a cluster for the duration of a test. */
export async function startCluster(): Promise<RedisServer> {
  // The default is the port plus 10,000, which may be above 65,535.
  const settings = { 'cluster-enabled': 'yes', 'cluster-port': String(await freePort()) };
  return redisForTest({ settings });
}
