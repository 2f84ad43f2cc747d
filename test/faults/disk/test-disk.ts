import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { COMPILED, MAIN } from '../../support/processes/child-process.ts';
import { SimulatedDisk } from '../power-loss/simulated-disk.ts';
import { readStorageLog } from '../power-loss/storage-log.ts';

export type TestDisk = ReturnType<typeof openTestDisk>;

/** Numbers of failures; -1: without end. */
export type Faults = {
  syncDelayMs?: number;
  logSyncFailures?: number;
  ledgerSyncFailures?: number;
  writeFailures?: number;
};

const COMPILER = 'cc';
const SOURCE = join(import.meta.dirname, 'test-disk.c');
/** Bytes of the numbers in test-disk.c. */
const CONTROL_BYTES = 24;
const FAILED_SYNCS_AT = 16;
const FAILED_WRITES_AT = 20;

/** In CI, a missing compiler is a failure. */
export function isCompilerMissing(): boolean {
  if (
    process.env.CI ||
    (process.platform === 'linux' && spawnSync(COMPILER, ['--version']).status === 0)
  )
    return false;
  console.warn('SKIPPED: the test needs Linux and a C compiler.');
  return true;
}

/**
 * A disk for processes with `env`: `root`, a new folder in `folder`. It becomes slow or fails as a
 * test wants, and records all changes.
 */
export function openTestDisk(folder: string, { records = true } = {}) {
  const library = join(folder, 'test-disk.so');
  const args = ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, SOURCE, '-ldl'];
  const compiled = spawnSync(COMPILER, args, { encoding: 'utf8' });
  if (compiled.status !== 0)
    throw new Error(`${SOURCE} does not compile: ${compiled.error ?? compiled.stderr}`);
  const root = join(folder, 'disk');
  mkdirSync(root, { mode: 0o700 });
  const control = join(folder, 'disk-control');
  writeFileSync(control, Buffer.alloc(CONTROL_BYTES));
  const log = join(folder, 'storage-log');
  const env = {
    LD_PRELOAD: library,
    TEST_DISK_FOLDER: root,
    TEST_DISK_CONTROL: control,
    ...(records && { TEST_DISK_LOG: log }),
  };
  return {
    root,
    log,
    env,
    /** Replaces the faults. */
    set(faults: Faults): void {
      const { syncDelayMs = 0, logSyncFailures = 0 } = faults;
      const { ledgerSyncFailures = 0, writeFailures = 0 } = faults;
      const numbers = [syncDelayMs, logSyncFailures, ledgerSyncFailures, writeFailures];
      const fd = openSync(control, 'r+');
      writeSync(fd, Buffer.from(Int32Array.from(numbers).buffer), 0, undefined, 0);
      closeSync(fd);
    },
    failedSyncs: () => readFileSync(control).readInt32LE(FAILED_SYNCS_AT),
    failedWrites: () => readFileSync(control).readInt32LE(FAILED_WRITES_AT),
    /**
     * The position after the newest recorded change. What a process acknowledged before this call
     * is synced before this position.
     */
    position: () => statSync(log).size,
    /**
     * Removes from the files what failed syncs have lost: Linux marks such pages as clean, and may
     * drop them, although the processes that run still see them. Returns the names of the files
     * that change. No process may use them.
     */
    drop(): string[] {
      const simulated = new SimulatedDisk(root);
      for (const { change } of readStorageLog(log)) simulated.apply(change);
      const before = readdirSync(root).map((name) => ({
        name,
        content: readFileSync(join(root, name)),
      }));
      simulated.writeAll(root);
      return before
        .filter(({ name, content }) => !readFileSync(join(root, name)).equals(content))
        .map(({ name }) => name);
    },
    /** Runs `dawatch …` on this disk, beside this process. Throws if it fails. */
    async run(args: readonly string[]): Promise<void> {
      const child = spawn(process.execPath, [MAIN, ...args], {
        env: { PATH: process.env.PATH, ...COMPILED, ...env },
      });
      const output: string[] = [];
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk) => output.push(String(chunk)));
      const [status] = await once(child, 'close');
      if (status !== 0) throw new Error(`dawatch ${args.join(' ')}: ${output.join('')}`);
    },
  };
}
