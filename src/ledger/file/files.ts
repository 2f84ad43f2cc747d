import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Copies into a new file that only its owner may read, and has it on the disk when it returns. */
export function copyToPrivateFile(source: string, target: string): void {
  const from = openSync(source, 'r');
  try {
    const to = openSync(target, 'wx', 0o600);
    try {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      for (let read = readSync(from, chunk); read > 0; read = readSync(from, chunk))
        for (let written = 0; written < read; ) written += writeSync(to, chunk, written, read - written);
      fsyncSync(to);
    } finally {
      closeSync(to);
    }
  } finally {
    closeSync(from);
  }
}

/** Whether the file begins as those of SQLite do. */
export function isSqliteFile(file: string): boolean {
  const descriptor = openSync(file, 'r');
  try {
    const magic = Buffer.alloc(MAGIC.length);
    return readSync(descriptor, magic) === MAGIC.length && magic.equals(MAGIC);
  } finally {
    closeSync(descriptor);
  }
}

const MAGIC = Buffer.from('SQLite format 3\0');

/** What the file holds, and under which name, is on the disk when this returns. */
export function syncWithFolder(file: string): void {
  for (const path of [file, dirname(file)]) {
    const descriptor = openSync(path, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }
}
