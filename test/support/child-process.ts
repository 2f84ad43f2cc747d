import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export type Child = {
  process: ChildProcess;
  /** What it sent so far, oldest first. */
  messages: unknown[];
  /** The next thing it sends. */
  message(): Promise<unknown>;
  /** SIGKILL; resolves when it is gone, and all it sent has arrived. */
  kill(): Promise<void>;
  exited: Promise<void>;
};

/** Runs a script of this folder in a process of its own, which is gone when the test ends. */
export function startChild(script: URL, args: string[], identity: { uid?: number; gid?: number } = {}): Child {
  const child = fork(fileURLToPath(script), args, {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    ...identity,
  });
  const messages: unknown[] = [];
  child.on('message', (message) => messages.push(message));
  // 'close' comes after the last message, 'exit' may come before it.
  const exited = once(child, 'close').then(() => undefined);
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  onTestFinished(kill);
  return { process: child, messages, message: async () => (await once(child, 'message'))[0], kill, exited };
}
