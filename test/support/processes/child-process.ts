import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

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
