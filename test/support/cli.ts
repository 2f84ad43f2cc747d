import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, expect } from 'vitest';
import { API_KEY } from './running-app.ts';

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'src/cli/main.ts');
/** Halves the start of a process. */
const COMPILED = join(ROOT, 'node_modules/.cache/dawatch-cli');

type Settings = {
  /** Beside DAWATCH_API_KEY; null takes one away. */
  env?: Record<string, string | null>;
  input?: string;
  /** One without settings of its own, unless given. */
  cwd?: string;
};

const running = new Map<ChildProcessWithoutNullStreams, Promise<unknown>>();
afterAll(async () => {
  for (const child of running.keys()) child.kill('SIGKILL');
  await Promise.all(running.values());
});

/** The command line as a process of its own, ended with the test file. */
export function startCli(args: readonly string[], { env = {}, cwd = tmpdir() }: Settings = {}) {
  const common = { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: COMPILED, DAWATCH_API_KEY: API_KEY };
  const given = Object.entries({ ...common, ...env });
  const kept = Object.fromEntries(given.filter(([, value]) => value !== null)) as Record<string, string>;
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [MAIN, ...args], { cwd, env: kept });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  running.set(child, exit);
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined);
  return { child, exit };
}

/** Runs it to its end. */
export async function cli(args: readonly string[], settings: Settings = {}) {
  const { child, exit } = startCli(args, settings);
  child.stdin.end(settings.input ?? '');
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  // No terminal: nothing that only one understands, and no stack trace of ours.
  expect(stdout + stderr).not.toContain('\u001b');
  expect(stderr).not.toMatch(/^ +at .+:\d+/m);
  return { code, stdout, stderr };
}
