import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { checkIntegrity } from '../ledger/file/integrity.ts';
import type { LedgerInspection } from '../ledger/maintenance/inspect.ts';
import { nearestFolder } from './disk.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';

/** The server cuts it back to 64 MB whenever nobody reads an old state of it. */
const LARGE_WAL_BYTES = 256 * 1024 * 1024;
const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_EVERYONE = 0o002;

/** What can be told of the ledger without reading all of it. */
export function checkLedger(file: string, path: string, seen: LedgerInspection): Finding[] {
  if (seen.kind === 'missing') {
    const folder = nearestFolder(path);
    return [
      statSync(folder).isDirectory() && mayWrite(folder)
        ? ok('ledger', `there is none at ${file} yet: the first start makes it`)
        : problem(
            'ledger',
            `there is none at ${file}, and this user may not make it`,
            `give the user of the server ${folder}`,
          ),
    ];
  }
  // What is no ledger holds no secrets, and its rights are not for us to change.
  if (seen.kind === 'refused' && seen.problem === 'foreign') return [findingOf(file, seen)];
  return [findingOf(file, seen), ...checkPermissions(file, path), ...checkWal(path)];
}

function findingOf(file: string, seen: Exclude<LedgerInspection, { kind: 'missing' }>): Finding {
  switch (seen.kind) {
    case 'refused':
      return problem(
        'ledger',
        seen.message,
        // To restore a backup undoes what was tracked since: nothing for a ledger that is sound, but of a newer version say.
        seen.problem === 'corrupt'
          ? `restore a backup to ${file}, or see that ${settingName('database')} is right`
          : `see that ${settingName('database')} is right, that this is the dawatch that wrote it, and who may use it`,
      );
    case 'older':
      return seen.found === 0
        ? ok('ledger', `${file} is empty: the first start makes it a ledger`)
        : warning(
            'ledger',
            `${file} has schema ${seen.found}, this dawatch has ${seen.needed}`,
            'copy it (dawatch backup), then start this version, which brings it up to date',
          );
    case 'current':
      return ok('ledger', `${file}, schema ${seen.schema}`);
    default:
      return seen satisfies never;
  }
}

function checkPermissions(file: string, path: string): Finding[] {
  const isOpen = (statSync(path).mode & OPEN_TO_OTHERS) !== 0;
  return [
    ...(mayWrite(path) && mayWrite(dirname(path))
      ? []
      : [
          problem(
            'ledger.rights',
            `this user may not write ${file} and its folder`,
            'see as whom the server should run',
          ),
        ]),
    isOpen
      ? warning('ledger.rights', `others may read ${file}, which holds the secrets of webhooks`, `chmod 600 ${file}`)
      : ok('ledger.rights', 'only its owner may read it'),
    ...((statSync(dirname(path)).mode & WRITABLE_BY_EVERYONE) === 0
      ? []
      : [
          warning(
            'ledger.rights',
            `everyone may make files in ${dirname(path)}`,
            'give the ledger a folder of its own, with the mode 700',
          ),
        ]),
  ];
}

function checkWal(path: string): Finding[] {
  const wal = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  const message = `the log beside the ledger has ${(wal / 1e6).toFixed(0)} MB`;
  if (wal < LARGE_WAL_BYTES) return [ok('ledger.wal', message)];
  const action =
    'end what reads the ledger for long (a backup, a shell of SQLite); a restart of the server writes it back';
  return [warning('ledger.wal', message, action)];
}

export async function checkLedgerIntegrity(
  file: string,
  { full, signal }: { full: boolean; signal: AbortSignal },
): Promise<Finding[]> {
  const integrity = await checkIntegrity(file, { full, signal });
  switch (integrity.kind) {
    case 'sound':
      return [ok('ledger.integrity', full ? 'sound, indexes too' : 'sound (its indexes: --full)')];
    case 'damaged':
      return [
        problem(
          'ledger.integrity',
          `${file} is damaged: ${integrity.detail}`,
          'stop the server, keep a copy of the file, and restore the last backup',
        ),
      ];
    case 'failed':
      return [
        problem('ledger.integrity', `${file} can't be read: ${integrity.detail}`, 'see to the disk and to its rights'),
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
