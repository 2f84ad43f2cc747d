import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import { API_KEY } from '../app/running-app.ts';
import { COMPILED, MAIN } from './child-process.ts';
import { runHere } from './cli-here.ts';

type Settings = {
  /** In addition to DAWATCH_API_KEY; null removes a variable. */
  env?: Record<string, string | null>;
  input?: string;
  /** A folder without settings by default. */
  cwd?: string;
};
type Ended = { code: number | null; stdout: string; stderr: string };

/** Starts the command line in its own process, which ends with the test. */
export function startCli(args: readonly string[], { env = {}, cwd = tmpdir() }: Settings = {}) {
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: variables({ PATH: process.env.PATH ?? '', ...COMPILED, ...env }),
  });
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exit;
  });
  // The process may end before it has read everything.
  child.stdin.on('error', () => undefined);
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    return await exit;
  };
  return { child, exit, stop };
}

/** What a process has written so far. */
export function outputOf(child: ChildProcessWithoutNullStreams) {
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk) => {
      output[name] += chunk;
    });
  return output;
}

/** Runs a command to its end in its own process, for what depends on the process itself. */
export async function cliProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child, exit } = startCli(args, settings);
  child.stdin.end(settings.input ?? '');
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return checked({ code, stdout, stderr });
}

/** Runs a command to its end within this process, which is ten times as fast. */
export async function cli(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { env = {}, input = '', cwd = tmpdir() } = settings;
  return checked(await runHere(args, { env: variables(env), input, cwd }));
}

function variables(env: Record<string, string | null>): Record<string, string> {
  const given = Object.entries({ DAWATCH_API_KEY: API_KEY, ...env });
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== null));
}

function checked(ended: Ended): Ended {
  // Without a terminal, the output has no escape codes, and never a stack trace of dawatch.
  expect(ended.stdout + ended.stderr).not.toContain('\u001b');
  expect(ended.stderr).not.toMatch(/^ +at .+:\d+/m);
  // Every command that does not succeed says why.
  if (ended.code !== 0) expect(ended.stdout + ended.stderr).not.toBe('');
  return ended;
}
