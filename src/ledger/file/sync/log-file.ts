import { closeSync, existsSync, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import type Database from 'better-sqlite3';

const CHUNK_BYTES = 1024 * 1024;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/**
 * Writes the bytes of the write-ahead log again in their places, and syncs them. After a failed sync, Linux marks pages as clean that
 * it could not write: their content is only in the cache, and without a new write no sync would store it. Other connections may read
 * meanwhile. No connection can append to the log, restart it or truncate it, because each of these needs the lock for writes.
 */
export function rewriteLog(db: Database.Database): void {
  const log = `${db.name}-wal`;
  if (!existsSync(log)) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    withFile(log, 'r+', (fd) => {
      const { size } = fstatSync(fd);
      const chunk = Buffer.alloc(Math.min(size, CHUNK_BYTES));
      for (let at = 0; at < size; ) {
        const bytes = readSync(fd, chunk, 0, Math.min(chunk.length, size - at), at);
        if (bytes === 0) throw new Error(`${log} was truncated by another program`);
        for (let done = 0; done < bytes; ) done += writeSync(fd, chunk, done, bytes - done, at + done);
        at += bytes;
      }
      fdatasyncSync(fd);
    });
  } finally {
    db.exec('ROLLBACK');
  }
}

/**
 * Syncs what a connection has read, if a server has committed it and not synced it yet. Must be called before a command shows what it
 * has read, and while the connection is open, which keeps the log in its place.
 */
export function syncLog(db: Database.Database): void {
  const log = `${db.name}-wal`;
  if (existsSync(log)) withFile(log, 'r', fdatasyncSync);
}

/**
 * Cuts up to `stepBytes` off the end of the write-ahead log, down to `toBytes`, if the log has been restarted and its end is unused. Truncating
 * 100 MB at once takes the system 20 ms. Returns false if the end may be in use. Throws if another connection is writing.
 *
 * After a power failure, the log must not be shorter and still begin with its earlier frames, which the ledger does not need any more: they
 * would replace newer content. A frame of the restarted log proves that SQLite has written its new header and synced it.
 */
export function cutLog(db: Database.Database, { toBytes, stepBytes }: { toBytes: number; stepBytes: number }): boolean {
  const version = () => db.pragma('data_version', { simple: true });
  const before = version();
  const [state] = db.pragma('wal_checkpoint(NOOP)') as { log: number }[];
  const frames = state?.log ?? 0;
  const frameBytes = FRAME_HEADER_BYTES + Number(db.pragma('page_size', { simple: true }));
  if (frames < 1 || LOG_HEADER_BYTES + frames * frameBytes > toBytes) return false;
  db.exec('BEGIN IMMEDIATE');
  try {
    // Otherwise another connection has committed since its length was read.
    if (version() !== before) return false;
    withFile(`${db.name}-wal`, 'r+', (fd) => {
      const { size } = fstatSync(fd);
      if (size > toBytes) ftruncateSync(fd, Math.max(toBytes, size - stepBytes));
    });
    return true;
  } finally {
    db.exec('ROLLBACK');
  }
}

function withFile(path: string, flags: string, work: (fd: number) => void): void {
  const fd = openSync(path, flags);
  try {
    work(fd);
  } finally {
    closeSync(fd);
  }
}
