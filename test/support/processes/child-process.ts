import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import pkg from '../../../package.json' with { type: 'json' };

export type Child = {
  process: ChildProcess;
  /** The messages so far, oldest first. */
  messages: unknown[];
  /** Resolves with the next message. */
  message(): Promise<unknown>;
  /** Sends SIGKILL; resolves when the process has ended and all its messages have arrived. */
  kill(): Promise<void>;
  exited: Promise<void>;
};

/** Runs a script of this folder in its own process, killed when the test ends. */
export function startChild(
  script: URL,
  args: string[],
  options: { uid?: number; gid?: number; env?: NodeJS.ProcessEnv } = {},
): Child {
  const child = fork(fileURLToPath(script), args, {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    ...options,
  });
  const messages: unknown[] = [];
  child.on('message', (message) => messages.push(message));
  // 'close' follows the last message, 'exit' may precede it.
  const exited = once(child, 'close').then(() => undefined);
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  return {
    process: child,
    messages,
    message: async () => (await once(child, 'message'))[0],
    kill,
    exited,
  };
}

const ROOT = join(import.meta.dirname, '../../..');

/** The file that `dawatch` runs: of the sources, or as published. */
export const MAIN = join(ROOT, process.env.TEST_MAIN ?? 'src/cli/main.js');

/** The options that `npm start` passes to Node. */
export const NODE_FLAGS = pkg.scripts.start.split(' ').filter((word) => word.startsWith('--'));

/** The folder for compiled code, which halves the start time of later processes. */
export const COMPILED = { NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/dawatch-cli') };

const compiled = new Set<string>();

/**
 * Fills the compile cache for processes that are killed before they write it: without settings the
 * command loads everything and exits.
 */
export function compile(command: 'serve' | 'worker', folder: string): void {
  if (compiled.has(command)) return;
  compiled.add(command);
  spawnSync(process.execPath, [MAIN, command], { cwd: folder, env: COMPILED });
}
