import { existsSync, statfsSync } from 'node:fs';

const FOLDER = '/dev/shm';
/** The space that all tests together require. A container has 64 MiB by default. */
const REQUIRED_BYTES = 2 ** 30;

/**
 * A folder in memory, where commits do not wait for a disk; undefined if there is none with enough
 * space.
 */
export const MEMORY = hasFreeSpace() ? FOLDER : undefined;

function hasFreeSpace(): boolean {
  if (!existsSync(FOLDER)) return false;
  const { bavail, bsize } = statfsSync(FOLDER);
  return bavail * bsize >= REQUIRED_BYTES;
}
