import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '../../support/processes/child-process.ts';
import { compilePreload } from '../disk/preload.ts';

export type Recorder = ReturnType<typeof openRecorder>;

/** Compiles the recorder, for processes that use `root`, a new folder in `folder`. */
export function openRecorder(folder: string) {
  const library = join(folder, 'recorder.so');
  compilePreload(join(import.meta.dirname, 'recorder.c'), library);
  const root = join(folder, 'disk');
  mkdirSync(root, { mode: 0o700 });
  const log = join(folder, 'storage-log');
  const env = { LD_PRELOAD: library, POWER_LOSS_FOLDER: root, POWER_LOSS_LOG: log };
  return {
    root,
    log,
    /** For the processes to record. */
    env,
    /**
     * The position after the newest change. What a process acknowledged before this call is synced
     * before this position.
     */
    position: () => statSync(log).size,
    /** Runs a recorded `dawatch …` beside this process. Throws if it fails. */
    async run(args: readonly string[]): Promise<void> {
      const child = spawn(process.execPath, [MAIN, ...args], {
        env: { PATH: process.env.PATH, ...env },
      });
      const output: string[] = [];
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => output.push(String(chunk)));
      const [status] = await once(child, 'close');
      if (status !== 0) throw new Error(`dawatch ${args.join(' ')}: ${output.join('')}`);
    },
  };
}
