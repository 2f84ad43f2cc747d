import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A worker as its users start it, in a process that can be killed and started again; gone when the test ends. */
export function prepareWorker(folder: string, name: string, settings: Record<string, unknown>) {
  const config = join(folder, `${name}.yaml`);
  const own = { worker: { name }, log: { level: 'silent' } };
  writeFileSync(config, JSON.stringify({ ...own, ...settings }));
  let child: ChildProcess | undefined;
  const end = async (signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };
  onTestFinished(() => end('SIGKILL'));
  return {
    start(): void {
      child = spawn(process.execPath, ['src/cli/main.ts', 'worker', '--config', config], { stdio: 'inherit', env: {} });
    },
    kill: () => end('SIGKILL'),
    /** Resolves when it is gone, with its exit code. */
    async stop(): Promise<number | null | undefined> {
      await end('SIGTERM');
      return child?.exitCode;
    },
  };
}
