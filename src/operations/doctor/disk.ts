import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Finding, ok, problem, reported, warning } from './finding.ts';

const PROBLEM_BYTES = 100e6;
const WARNING_BYTES = 1e9;

/** File system types of statfs(2) on Linux on which SQLite cannot rely on locks or share a WAL. */
const NETWORK_FILE_SYSTEMS = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x01021997, '9P'],
  [0x5346414f, 'AFS'],
]);

export function checkDisk(
  file: string,
  statfs: (path: string) => Stats = (path) => statfsSync(path),
): Finding[] {
  const folder = nearestFolder(file);
  const { bavail, bsize, type } = statfs(folder);
  const freeBytes = bavail * bsize;
  const message = `${(freeBytes / 1e9).toFixed(1)} GB free in ${folder}`;
  const action =
    'free disk space, or stop the server and move the ledger; with a full disk, no submissions can be tracked';
  const space =
    freeBytes < PROBLEM_BYTES
      ? problem('disk', message, action)
      : freeBytes < WARNING_BYTES
        ? warning('disk', message, action)
        : ok('disk', message);
  const network = process.platform === 'linux' ? NETWORK_FILE_SYSTEMS.get(type >>> 0) : undefined;
  const risk = `${folder} is on a network file system (${network}), on which SQLite cannot rely on locks`;
  return reported(
    space,
    network !== undefined && warning('disk', risk, 'move the ledger to a local disk'),
  );
}

type Stats = { bavail: number; bsize: number; type: number };

/** Returns the directory of a file, or its nearest existing ancestor. */
export function nearestFolder(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestFolder(folder);
}
