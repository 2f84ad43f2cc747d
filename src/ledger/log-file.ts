import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import Database from 'better-sqlite3';
import { damaged } from './errors.ts';

const CHUNK_BYTES = 1024 * 1024;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

/**
 * Writes the bytes of the write-ahead log again in their places, and what was copied from it to the
 * ledger, and syncs both. After a failed sync, Linux marks pages as clean that it could not write:
 * their content is only in the cache, and without a new write no sync would store it. Other
 * connections may read meanwhile. No connection can append to the log, restart it or truncate it,
 * because each of these needs the lock for writes.
 */
export function rewriteLog(db: Database.Database): void {
  const log = `${db.name}-wal`;
  if (!existsSync(log)) return;
  // A connection that writes cannot read the state of the log.
  const other = new Database(db.name);
  try {
    withWriteLock(db, () =>
      withFile(log, 'r+', (fd) => {
        const { size } = fstatSync(fd);
        const chunk = Buffer.alloc(Math.min(size, CHUNK_BYTES));
        for (let at = 0; at < size; ) {
          const bytes = readSync(fd, chunk, 0, Math.min(chunk.length, size - at), at);
          if (bytes === 0) throw new Error(`${log} was truncated by another program`);
          writeAll(fd, chunk.subarray(0, bytes), at);
          at += bytes;
        }
        fdatasyncSync(fd);
        copyAgain(db, fd, logState(other));
      }),
    );
  } finally {
    other.close();
  }
}

/**
 * Copies to the ledger again what no checkpoint will copy: the pages whose newest frame was copied.
 * SQLite itself copies the whole log again only if no other process has kept it open. Another
 * process may copy other pages meanwhile.
 */
function copyAgain(db: Database.Database, log: number, state: LogState): void {
  const frameBytes = FRAME_HEADER_BYTES + Number(db.pragma('page_size', { simple: true }));
  const pages = Number(db.pragma('page_count', { simple: true }));
  const newest = newestFrames(db.name, log, { count: state.log, frameBytes });
  if (state.checkpointed <= 0) return;
  const frame = Buffer.alloc(frameBytes);
  // Never closed: closing any descriptor of a file releases all locks of the process on it, also
  // those of SQLite.
  const ledger = openSync(db.name, 'r+');
  for (const [page, index] of newest) {
    if (index >= state.checkpointed || page > pages) continue;
    readSync(log, frame, 0, frameBytes, LOG_HEADER_BYTES + index * frameBytes);
    writeAll(
      ledger,
      frame.subarray(FRAME_HEADER_BYTES),
      (page - 1) * (frameBytes - FRAME_HEADER_BYTES),
    );
  }
  fdatasyncSync(ledger);
}

/**
 * Returns the newest of the first `count` frames of each page. Throws LedgerError if a frame is
 * missing: another process has kept the log open and still counts it, although the system has
 * dropped it. A commit behind it would be lost at the next start without that process.
 */
function newestFrames(
  file: string,
  log: number,
  { count, frameBytes }: { count: number; frameBytes: number },
): Map<number, number> {
  const newest = new Map<number, number>();
  const frame = Buffer.alloc(frameBytes);
  const header = Buffer.alloc(LOG_HEADER_BYTES);
  readSync(log, header, 0, header.length, 0);
  const isLittleEndian = (header.readUInt32BE(0) & 1) === 0;
  let sums: Checksum = [header.readUInt32BE(24), header.readUInt32BE(28)];
  for (let index = 0; index < count; index++) {
    const bytes = readSync(log, frame, 0, frameBytes, LOG_HEADER_BYTES + index * frameBytes);
    sums = checksum(sums, frame.subarray(0, 8), isLittleEndian);
    sums = checksum(sums, frame.subarray(FRAME_HEADER_BYTES), isLittleEndian);
    // The salts tell the frames of this log from those of the one before it.
    const isOfThisLog = frame.compare(header, 16, 24, 8, 16) === 0;
    const isWhole = frame.readUInt32BE(16) === sums[0] && frame.readUInt32BE(20) === sums[1];
    if (bytes < frameBytes || !isOfThisLog || !isWhole)
      throw damaged(file, 'a part of its log is missing');
    newest.set(frame.readUInt32BE(0), index);
  }
  return newest;
}

type Checksum = [number, number];

/** Continues a checksum of SQLite's write-ahead log with 8 bytes, or a multiple of it. */
function checksum([first, second]: Checksum, bytes: Buffer, isLittleEndian: boolean): Checksum {
  const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + words.getUint32(at, isLittleEndian) + second) >>> 0;
    second = (second + words.getUint32(at + 4, isLittleEndian) + first) >>> 0;
  }
  return [first, second];
}

function writeAll(fd: number, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(fd, bytes, done, bytes.length - done, at + done);
}

/**
 * `log`: frames in the write-ahead log. `checkpointed`: how many of them were copied to the ledger.
 * -1: the file has no such log.
 */
type LogState = { log: number; checkpointed: number };

function logState(db: Database.Database): LogState {
  const [state] = db.pragma('wal_checkpoint(NOOP)') as LogState[];
  return state ?? { log: -1, checkpointed: -1 };
}

/**
 * Syncs what a connection has read, if a server has committed it and not synced it yet. Must be
 * called before a command shows what it has read, and while the connection is open, which keeps the
 * log in its place.
 */
export function syncLog(db: Database.Database): void {
  const log = `${db.name}-wal`;
  if (existsSync(log)) withFile(log, 'r', fdatasyncSync);
}

/**
 * Cuts up to `stepBytes` off the end of the write-ahead log, down to `toBytes`, if the log has been
 * restarted and its end is unused. Truncating 100 MB at once takes the system 20 ms. Returns false
 * if the end may be in use. Throws if another connection is writing.
 *
 * After a power failure, the log must not be shorter and still begin with its earlier frames, which
 * the ledger does not need any more: they would replace newer content. A frame of the restarted log
 * proves that SQLite has written its new header and synced it.
 */
export function cutLog(
  db: Database.Database,
  { toBytes, stepBytes }: { toBytes: number; stepBytes: number },
): boolean {
  const version = () => db.pragma('data_version', { simple: true });
  const before = version();
  const { log: frames } = logState(db);
  const frameBytes = FRAME_HEADER_BYTES + Number(db.pragma('page_size', { simple: true }));
  if (frames < 1 || LOG_HEADER_BYTES + frames * frameBytes > toBytes) return false;
  return withWriteLock(db, () => {
    // Otherwise another connection has committed since its length was read.
    if (version() !== before) return false;
    withFile(`${db.name}-wal`, 'r+', (fd) => {
      const { size } = fstatSync(fd);
      if (size > toBytes) ftruncateSync(fd, Math.max(toBytes, size - stepBytes));
    });
    return true;
  });
}

function withWriteLock<T>(db: Database.Database, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    return work();
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
