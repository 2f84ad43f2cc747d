import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { checkIntegrity } from '../../ledger/integrity.ts';
import { nearestFolder } from './disk.ts';
import { type Finding, ok, problem, reported, warning } from './finding.ts';
import type { LedgerInspection } from './inspect-ledger.ts';
import { settingName } from './settings.ts';

/** The server truncates the WAL to 64 MB whenever no read transaction prevents it. */
const LARGE_WAL_BYTES = 256 * 1024 * 1024;
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_EVERYONE = 0o002;

/** Checks the ledger without reading all of it: schema, permissions and WAL. */
export function checkLedger(file: string, path: string, seen: LedgerInspection): Finding[] {
  if (seen.kind === 'missing') {
    const folder = nearestFolder(path);
    if (statSync(folder).isDirectory() && mayWrite(folder))
      return [ok('ledger', `${file} does not exist yet; the first start creates it`)];
    const advice = `give the user of the server write permission for ${folder}`;
    return [problem('ledger', `${file} does not exist, and this user may not create it`, advice)];
  }
  // A file that is not a ledger contains no secrets of dawatch, so its permissions are not checked.
  if (seen.kind === 'refused' && seen.problem === 'foreign') return [findingOf(file, seen)];
  return [findingOf(file, seen), ...checkPermissions(file, path), ...checkWal(path)];
}

function findingOf(file: string, seen: Exclude<LedgerInspection, { kind: 'missing' }>): Finding {
  switch (seen.kind) {
    case 'refused':
      return problem(
        'ledger',
        seen.message,
        // Restoring a backup loses later data, so it is only advised for a damaged file, not for
        // one of a newer version.
        seen.problem === 'corrupt'
          ? `restore a backup to ${file}, or verify ${settingName('database')}`
          : `verify ${settingName('database')}, the version of dawatch that wrote the file, and its permissions`,
      );
    case 'older':
      return seen.found === 0
        ? ok('ledger', `${file} is empty; the first start initializes it`)
        : warning(
            'ledger',
            `${file} has schema ${seen.found}, this version of dawatch uses ${seen.needed}`,
            'back it up (dawatch backup), then start this version, which migrates it',
          );
    case 'current':
      return ok('ledger', `${file}, schema ${seen.schema}`);
    default:
      return seen satisfies never;
  }
}

function checkPermissions(file: string, path: string): Finding[] {
  const about = 'ledger.rights';
  const folder = dirname(path);
  const isWritable = mayWrite(path) && mayWrite(folder);
  const isShared = (statSync(folder).mode & WRITABLE_BY_EVERYONE) !== 0;
  const asOwner = 'run the server as the owner of the ledger, or change the permissions';
  const move = 'move the ledger to a directory of its own with the mode 700';
  return reported(
    !isWritable && problem(about, `this user may not write ${file} and its folder`, asOwner),
    (statSync(path).mode & OPEN_TO_OTHERS) === 0
      ? ok(about, 'readable only by its owner')
      : warning(
          about,
          `other users may read ${file}, which contains the secrets of webhooks`,
          `chmod 600 ${file}`,
        ),
    isShared && warning(about, `all users may create files in ${folder}`, move),
  );
}

function checkWal(path: string): Finding[] {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const message = `the write-ahead log has ${(wal / 1e6).toFixed(0)} MB`;
  if (wal < LARGE_WAL_BYTES) return [ok('ledger.wal', message)];
  const action =
    'end long reads of the ledger (a backup, an SQLite shell); a restart of the server truncates the log';
  return [warning('ledger.wal', message, action)];
}

export async function checkLedgerIntegrity(
  file: string,
  { full, signal }: { full: boolean; signal: AbortSignal },
): Promise<Finding[]> {
  const about = 'ledger.integrity';
  const integrity = await checkIntegrity(file, { full, signal });
  switch (integrity.kind) {
    case 'sound':
      return [
        ok(about, full ? 'intact, including indexes' : 'intact (use --full to verify indexes)'),
      ];
    case 'damaged': {
      const advice = 'stop the server, keep a copy of the file, and restore the last backup';
      return [problem(about, `${file} is damaged: ${integrity.detail}`, advice)];
    }
    case 'failed':
      return [
        problem(
          about,
          `${file} cannot be read: ${integrity.detail}`,
          'check the disk and the permissions',
        ),
      ];
    default:
      return integrity satisfies never;
  }
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
