// Runs checkpoints and reads, see disk-requests.ts. Other connections read and write the ledgers
// meanwhile.
import { fdatasyncSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import Database from 'better-sqlite3';
import type { DiskRequest, DiskResult } from './disk-requests.ts';
import { type FailedSync, isFailedSync, toFailedSync } from './failed-sync.ts';

parentPort?.on('message', ({ id, ...request }: DiskRequest & { id: number }) => {
  parentPort?.postMessage({
    id,
    ...(request.kind === 'checkpoint' ? checkpoint(request) : read(request)),
  });
});

function checkpoint({
  file,
  descriptor,
}: Extract<DiskRequest, { kind: 'checkpoint' }>): DiskResult {
  // After a complete checkpoint, the next commit may replace the log. What was copied before must
  // be on the disk by then.
  const failedBefore = sync(descriptor);
  if (failedBefore) return { failedSync: failedBefore };
  const error = errorOf(file, (db) => db.pragma('wal_checkpoint(PASSIVE)'));
  if (error)
    return isFailedSync(error) ? { failedSync: toFailedSync(error) } : { error: String(error) };
  // SQLite syncs the ledger only if nothing was committed during the checkpoint. Otherwise the next
  // checkpoint, on the event loop, would have to sync all that was copied here.
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

function read({ file, queries, parameters }: Extract<DiskRequest, { kind: 'read' }>): DiskResult {
  const rows: unknown[] = [];
  const error = errorOf(file, (db) => {
    // What matters is the memory of the system. If this connection is the last one to be closed, it
    // must be able to remove the log.
    db.pragma('cache_size = -1000');
    db.pragma('query_only = ON');
    for (const sql of queries) rows.push(db.prepare(sql).get(parameters));
  });
  return error ? { error: String(error) } : { rows };
}

/** Opens the ledger for `work`, and returns the error. */
function errorOf(file: string, work: (db: Database.Database) => void): unknown {
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { fileMustExist: true, timeout: 0 });
    work(db);
    return undefined;
  } catch (error) {
    return error;
  } finally {
    db?.close();
  }
}
