import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { CredentialStore } from '../../access/credentials-store.ts';
import { guarded, LedgerError, type LedgerProblem } from '../../ledger/errors.ts';
import { checkIntegrity } from '../../ledger/integrity.ts';
import { CommittedChanges, LedgerDatabase } from '../../ledger/ledger-database.ts';
import { realPath, syncLog } from '../../ledger/open.ts';
import { assertOwnSchema, schemaOf } from '../../ledger/schema.ts';
import { EventRoutes } from '../../notifications/outbox.ts';
import type { Webhook } from '../../notifications/webhook.ts';
import { Webhooks } from '../../notifications/webhooks-store.ts';
import { type Finding, ok, problem, reported, settingName, warning } from './finding.ts';

/** The state of a ledger as another process sees it. */
export type LedgerInspection =
  | { kind: 'missing' }
  | { kind: 'refused'; problem: LedgerProblem | undefined; message: string }
  /** The schema is of an older version; `found` is 0 for an empty file. */
  | { kind: 'older'; found: number; needed: number }
  | {
      kind: 'current';
      schema: number;
      hasCredential: boolean;
      /** Newest first, at most `MAX_WEBHOOKS`. */
      webhooks: Webhook[];
      /** Number by destination. */
      deadLetters: ReadonlyMap<string, number>;
    };

const BUSY_MS = 2_000;
const MAX_WEBHOOKS = 1_000;

/**
 * Reads the state of a ledger, with or without a server. Never throws, and never creates, migrates
 * or changes a ledger. Without a server, SQLite leaves its two empty side files, which the next
 * server reuses.
 */
export function inspectLedger(file: string, now: number): LedgerInspection {
  const path = realPath(file);
  if (!existsSync(path)) return { kind: 'missing' };
  try {
    return guarded(file, () => {
      const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_MS });
      try {
        assertOwnSchema(db, file);
        const { found, needed } = schemaOf(db);
        if (found !== needed) return { kind: 'older', found, needed };
        const inspection = inspectCurrent(new LedgerDatabase(db, file), found, now);
        syncLog(db);
        return inspection;
      } finally {
        db.close();
      }
    });
  } catch (error) {
    const problem = error instanceof LedgerError ? error.problem : undefined;
    return {
      kind: 'refused',
      problem,
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

function inspectCurrent(database: LedgerDatabase, schema: number, now: number): LedgerInspection {
  const deadLetters = database.rows<{ destination: string; count: number }>(
    "SELECT destination, count(*) AS count FROM deliveries WHERE state = 'dead' GROUP BY destination",
  );
  const webhooks = new Webhooks(database, {
    routes: new EventRoutes(database),
    dead: new CommittedChanges(database),
  });
  return {
    kind: 'current',
    schema,
    hasCredential: new CredentialStore(database).isAnyKept(),
    webhooks: webhooks.list({ limit: MAX_WEBHOOKS, now }).webhooks,
    deadLetters: new Map(deadLetters.map(({ destination, count }) => [destination, count])),
  };
}

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
function nearestFolder(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestFolder(folder);
}
