import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { MAIN } from '../../support/processes/main-file.ts';

export type Recorder = ReturnType<typeof openRecorder>;

const COMPILER = 'cc';

/** In CI, a missing compiler is a failure. */
export function isCompilerMissing(): boolean {
  if (process.env.CI || (process.platform === 'linux' && spawnSync(COMPILER, ['--version']).status === 0)) return false;
  console.warn('SKIPPED: the recorder of writes needs Linux and a C compiler.');
  return true;
}

/** Compiles the recorder, for processes that use `root`, a new folder in `folder`. */
export function openRecorder(folder: string) {
  const library = join(folder, 'recorder.so');
  const source = join(import.meta.dirname, 'recorder.c');
  const compiled = spawnSync(COMPILER, ['-O2', '-shared', '-fPIC', '-o', library, source, '-ldl'], {
    encoding: 'utf8',
  });
  if (compiled.status !== 0) throw new Error(`the recorder does not compile: ${compiled.error ?? compiled.stderr}`);
  const root = join(folder, 'disk');
  mkdirSync(root, { mode: 0o700 });
  const log = join(folder, 'storage-log');
  const env = { LD_PRELOAD: library, POWER_LOSS_FOLDER: root, POWER_LOSS_LOG: log };
  return {
    root,
    log,
    /** For the processes to record. */
    env,
    /** The position after the newest change. What a process acknowledged before this call is synced before this position. */
    position: () => statSync(log).size,
    /** Runs a recorded `dawatch …` beside this process. Throws if it fails. */
    async run(args: readonly string[]): Promise<void> {
      const child = spawn(process.execPath, [MAIN, ...args], { env: { PATH: process.env.PATH, ...env } });
      const output: string[] = [];
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(String(chunk)));
      const [status] = await once(child, 'close');
      if (status !== 0) throw new Error(`dawatch ${args.join(' ')}: ${output.join('')}`);
    },
  };
}
