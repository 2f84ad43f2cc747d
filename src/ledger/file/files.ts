import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const CHUNK_BYTES = 4 * 1024 * 1024;

/** Copies a file to a new one that only its owner may read. The copy is on the disk when this returns. */
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

/** Returns whether the file begins with the header of SQLite. */
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

/** Writes the content of a file and its folder entry to the disk. */
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
