// Runs checkpoints for checkpoints.ts. Other connections read and write the ledgers meanwhile.
import { fdatasyncSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { FailedSync } from './checkpoints.ts';

parentPort?.on('message', ({ id, file, descriptor }: { id: number; file: string; descriptor: number }) => {
  const error = checkpoint(file);
  const failedSync = error === undefined ? sync(descriptor) : undefined;
  parentPort?.postMessage({ id, error, failedSync });
});

/**
 * SQLite syncs the ledger only if nothing was committed during the checkpoint. Otherwise the next checkpoint, on the event loop, would have
 * to sync all that was copied here.
 */
function sync(descriptor: number): FailedSync | undefined {
  try {
    fdatasyncSync(descriptor);
    return undefined;
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { message, code };
  }
}

function checkpoint(file: string): string | undefined {
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { fileMustExist: true, timeout: 0 });
    db.pragma('wal_checkpoint(PASSIVE)');
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    db?.close();
  }
}
