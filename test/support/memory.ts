import { existsSync, statfsSync } from 'node:fs';

const FOLDER = '/dev/shm';
/** What the tests hold there at once. A container has 64 MiB, unless it is given more. */
const REQUIRED_BYTES = 2 ** 30;

/** A folder on a file system in memory, where a ledger's commits wait for no disk; undefined where there is none with room. */
export const MEMORY = hasFreeSpace() ? FOLDER : undefined;

function hasFreeSpace(): boolean {
  if (!existsSync(FOLDER)) return false;
  const { bavail, bsize } = statfsSync(FOLDER);
  return bavail * bsize >= REQUIRED_BYTES;
}
