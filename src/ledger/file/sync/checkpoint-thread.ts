// Runs checkpoints for checkpoints.ts. Other connections read and write the ledgers meanwhile.
import { fdatasyncSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { CheckpointResult } from './checkpoints.ts';
import { type FailedSync, isFailedSync, toFailedSync } from './failed-sync.ts';

type Request = { id: number; file: string; descriptor: number };

parentPort?.on('message', ({ id, file, descriptor }: Request) => {
  parentPort?.postMessage({ id, ...run(file, descriptor) });
});

/** `descriptor`: of the ledger; open for as long as the process may have written to it, so that its syncs report every failed write. */
function run(file: string, descriptor: number): CheckpointResult {
  // After a complete checkpoint, the next commit may replace the log. What was copied before must be on the disk by then.
  const failedBefore = sync(descriptor);
  if (failedBefore) return { failedSync: failedBefore };
  const error = checkpoint(file);
  if (error) return isFailedSync(error) ? { failedSync: toFailedSync(error) } : { error: String(error) };
  // SQLite syncs the ledger only if nothing was committed during the checkpoint. Otherwise the next checkpoint, on the event loop, would have
  // to sync all that was copied here.
  return { failedSync: sync(descriptor) };
}

function sync(descriptor: number): FailedSync | undefined {
  try {
    fdatasyncSync(descriptor);
    return undefined;
  } catch (error) {
    return toFailedSync(error);
  }
}

function checkpoint(file: string): unknown {
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { fileMustExist: true, timeout: 0 });
    db.pragma('wal_checkpoint(PASSIVE)');
    return undefined;
  } catch (error) {
    return error;
  } finally {
    db?.close();
  }
}
