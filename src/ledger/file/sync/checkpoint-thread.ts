// Runs checkpoints for checkpoints.ts. Other connections read and write the ledgers meanwhile.
import { parentPort } from 'node:worker_threads';
import Database from 'better-sqlite3';

parentPort?.on('message', ({ id, file }: { id: number; file: string }) => {
  parentPort?.postMessage({ id, error: checkpoint(file) });
});

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
