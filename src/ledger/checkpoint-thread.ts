// Copies the write-ahead log of a ledger to its file while the server goes on, see log-sync.ts.
import { fdatasyncSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { isFailedSync } from './errors.ts';
import type { CheckpointResult, ThreadData } from './log-sync.ts';

const { file, ledger, closed } = workerData as ThreadData;
// Open for as long as the ledger: the system reports a failed write to every descriptor that was
// open at that time, but not to those that were opened later.
const db = new Database(file, { fileMustExist: true, timeout: 0 });
db.pragma('schema_version');

parentPort?.on('message', (request: 'checkpoint' | 'close') => {
  if (request === 'checkpoint') parentPort?.postMessage(checkpoint());
  else close();
});

function checkpoint(): CheckpointResult {
  try {
    db.pragma('wal_checkpoint(PASSIVE)');
    // SQLite syncs the ledger only if nothing was committed meanwhile. Without this, the checkpoint
    // on the event loop would sync all that was copied here.
    fdatasyncSync(ledger);
    return {};
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { error: { message, code }, isFailedSync: isFailedSync(error) };
  }
}

function close(): void {
  db.close();
  Atomics.store(closed, 0, 1);
  Atomics.notify(closed, 0);
  parentPort?.close();
}
