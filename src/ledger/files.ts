import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
} from 'node:fs';
import { dirname } from 'node:path';

/**
 * Copies a file to a new one that only its owner may read. The copy is on the disk when this
 * returns.
 */
export function copyToPrivateFile(source: string, target: string): void {
  copyFileSync(source, target, constants.COPYFILE_EXCL);
  chmodSync(target, 0o600);
  syncWithFolder(target);
}

/** Gives a file a second name, or copies it if the file system has no links. */
export function linkOrCopy(path: string, second: string): void {
  try {
    linkSync(path, second);
  } catch {
    copyToPrivateFile(path, second);
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
