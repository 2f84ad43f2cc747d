import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import { runHere } from './cli-here.ts';
import { COMPILED, MAIN } from './main-file.ts';
import { API_KEY } from './running-app.ts';

type Settings = {
  /** Beside DAWATCH_API_KEY; null takes one away. */
  env?: Record<string, string | null>;
  input?: string;
  /** One without settings of its own, unless given. */
  cwd?: string;
};
type Ended = { code: number | null; stdout: string; stderr: string };

/** The command line as a process of its own, ended with the test. */
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
  // It may end before it has read everything.
  child.stdin.on('error', () => undefined);
  return { child, exit };
}

/** Runs it to its end, as a process of its own: each command at least once, as its users do. */
export async function cliProcess(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { child, exit } = startCli(args, settings);
  child.stdin.end(settings.input ?? '');
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return checked({ code, stdout, stderr });
}

/** Runs it to its end, within this process: ten times as fast. */
export async function cli(args: readonly string[], settings: Settings = {}): Promise<Ended> {
  const { env = {}, input = '', cwd = tmpdir() } = settings;
  return checked(await runHere(args, { env: variables(env), input, cwd }));
}

function variables(env: Record<string, string | null>): Record<string, string> {
  const given = Object.entries({ DAWATCH_API_KEY: API_KEY, ...env });
  return Object.fromEntries(given.filter((entry): entry is [string, string] => entry[1] !== null));
}

function checked(ended: Ended): Ended {
  // No terminal: nothing that only one understands, and no stack trace of ours.
  expect(ended.stdout + ended.stderr).not.toContain('\u001b');
  expect(ended.stderr).not.toMatch(/^ +at .+:\d+/m);
  return ended;
}
