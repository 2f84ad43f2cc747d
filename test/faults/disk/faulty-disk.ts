import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { compilePreload } from './preload.ts';

/** -1: without end. */
export type Faults = {
  syncDelayMs?: number;
  logSyncFailures?: number;
  ledgerSyncFailures?: number;
  writeFailures?: number;
};

/** Bytes of the numbers in faulty-disk.c. */
const CONTROL_BYTES = 24;
const FAILED_SYNCS_AT = 16;
const FAILED_WRITES_AT = 20;

/**
 * A disk below `root`, for processes with `env`, that becomes slow or fails as a test wants. Its
 * own files are in `folder`.
 */
export function openFaultyDisk(folder: string, root: string) {
  const library = join(folder, 'faulty-disk.so');
  compilePreload(join(import.meta.dirname, 'faulty-disk.c'), library);
  const control = join(folder, 'faulty-disk');
  writeFileSync(control, Buffer.alloc(CONTROL_BYTES));
  return {
    env: { LD_PRELOAD: library, FAULTY_DISK_FOLDER: root, FAULTY_DISK_CONTROL: control },
    /** Replaces the faults. */
    set(faults: Faults): void {
      const {
        syncDelayMs = 0,
        logSyncFailures = 0,
        ledgerSyncFailures = 0,
        writeFailures = 0,
      } = faults;
      const numbers = Int32Array.of(
        syncDelayMs,
        logSyncFailures,
        ledgerSyncFailures,
        writeFailures,
      );
      const fd = openSync(control, 'r+');
      writeSync(fd, Buffer.from(numbers.buffer), 0, undefined, 0);
      closeSync(fd);
    },
    /** The number of syncs that have failed. */
    failedSyncs: () => readFileSync(control).readInt32LE(FAILED_SYNCS_AT),
    failedWrites: () => readFileSync(control).readInt32LE(FAILED_WRITES_AT),
  };
}
