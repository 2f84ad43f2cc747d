import { readFileSync } from 'node:fs';

/**
 * One recorded change of a file or folder. Paths are absolute; `inode` identifies a file while it
 * is open or has a name.
 */
export type StorageChange =
  | { kind: 'opened'; inode: bigint; path: string; isFolder: boolean }
  | { kind: 'written'; inode: bigint; offset: number; data: Buffer }
  | { kind: 'truncated'; inode: bigint; size: number }
  /** `number`: of the sync, the same where it ends. */
  | { kind: 'sync_begun'; inode: bigint; number: number }
  | { kind: 'synced' | 'sync_failed'; inode: bigint; number: number }
  | { kind: 'renamed' | 'linked'; from: string; to: string }
  | { kind: 'unlinked'; path: string };

const HEAD_BYTES = 32;

/** A change, and the position after it in the record, in bytes. */
export type RecordedChange = { change: StorageChange; end: number };

/** Reads the record that test-disk.c has written. */
export function readStorageLog(file: string): RecordedChange[] {
  const log = readFileSync(file);
  const changes: RecordedChange[] = [];
  for (let at = 0; at < log.length; ) {
    const head = log.subarray(at, at + HEAD_BYTES);
    const path = log.subarray(at + HEAD_BYTES).subarray(0, head.readUInt32LE(4));
    const end = at + HEAD_BYTES + path.length + Number(head.readBigUInt64LE(24));
    if (end > log.length) throw new Error('the record ends in the middle of a change');
    const data = log.subarray(at + HEAD_BYTES + path.length, end);
    changes.push({ change: toChange(head, path.toString(), data), end });
    at = end;
  }
  return changes;
}

function toChange(head: Buffer, path: string, data: Buffer): StorageChange {
  const inode = head.readBigUInt64LE(8);
  const offset = Number(head.readBigUInt64LE(16));
  switch (head.readUInt32LE(0)) {
    case 1:
      return { kind: 'opened', inode, path, isFolder: offset === 1 };
    case 2:
      return { kind: 'written', inode, offset, data };
    case 3:
      return { kind: 'truncated', inode, size: offset };
    case 4:
      return { kind: 'synced', inode, number: offset };
    case 5:
      return { kind: 'renamed', from: path, to: data.toString() };
    case 6:
      return { kind: 'unlinked', path };
    case 7:
      return { kind: 'linked', from: path, to: data.toString() };
    case 8:
      return { kind: 'sync_begun', inode, number: offset };
    case 9:
      return { kind: 'sync_failed', inode, number: offset };
    default:
      throw new Error('the record has a change of unknown kind');
  }
}
