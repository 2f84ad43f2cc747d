import { closeSync, openSync, readSync, statSync } from 'node:fs';

/**
 * The content of a file. unusual: it is neither a regular file nor a pipe, such as a device, which
 * may never end. too_large: it has more bytes than allowed.
 */
type BoundedFile = { kind: 'read'; bytes: Buffer } | { kind: 'unusual' } | { kind: 'too_large' };

/**
 * Reads a file of at most `maxBytes`, through symbolic links. A pipe is read until its end. Throws
 * the error of the system, such as ENOENT, and EISDIR for a directory.
 */
export function readBounded(file: string, maxBytes: number): BoundedFile {
  const stats = statSync(file);
  // Opening a device may already have an effect. Reading a directory fails with EISDIR.
  if (!stats.isFile() && !stats.isFIFO() && !stats.isDirectory()) return { kind: 'unusual' };
  const descriptor = openSync(file, 'r');
  try {
    // The size is not known beforehand: it is 0 for pipes and files of /proc, and may grow.
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (let read = 1; read > 0 && length <= maxBytes; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    return length > maxBytes
      ? { kind: 'too_large' }
      : { kind: 'read', bytes: bytes.subarray(0, length) };
  } finally {
    closeSync(descriptor);
  }
}
