import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compilePreload } from './preload.ts';

/** -1: without end. */
type Faults = { syncDelayMs?: number; syncFailures?: number; databaseSyncFailures?: number; writeFailures?: number };

/** A disk below `folder`, for processes with `env`, that becomes slow or fails as a test wants. */
export function openFaultyDisk(folder: string, root: string) {
  const library = join(folder, 'faulty-disk.so');
  compilePreload(join(import.meta.dirname, 'faulty-disk.c'), library);
  const control = join(folder, 'faulty-disk');
  const set = ({ syncDelayMs = 0, syncFailures = 0, databaseSyncFailures = 0, writeFailures = 0 }: Faults) => {
    const numbers = Int32Array.of(syncDelayMs, syncFailures, writeFailures, 0, databaseSyncFailures);
    writeFileSync(control, Buffer.from(numbers.buffer), { flag: 'r+' });
  };
  writeFileSync(control, Buffer.alloc(20));
  return {
    env: { LD_PRELOAD: library, FAULTY_DISK_FOLDER: root, FAULTY_DISK_CONTROL: control },
    /** Replaces the faults. */
    set,
    /** The number of syncs that have failed since `set`. */
    failedSyncs: () => readFileSync(control).readInt32LE(12),
  };
}
