import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { CredentialStore } from '../../access/credentials-store.ts';
import { assertIntact } from '../../ledger/check.ts';
import { guarded, LedgerError, type LedgerProblem } from '../../ledger/errors.ts';
import { CommittedChanges, LedgerDatabase } from '../../ledger/ledger-database.ts';
import { realPath } from '../../ledger/open.ts';
import { needsRecovery } from '../../ledger/recovery.ts';
import { assertOwnSchema, schemaOf } from '../../ledger/schema.ts';
import type { DeadLetters } from '../../notifications/delivery.ts';
import { EventRoutes, Outbox } from '../../notifications/outbox.ts';
import type { Webhook } from '../../notifications/webhook.ts';
import { Webhooks } from '../../notifications/webhooks-store.ts';
import { dataOf } from '../../submissions/classify.ts';
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
      /** Of the newest finalized submissions, newest first, at most `MAX_FINALS`. */
      finals: FinalBlock[];
    };

/** The block of a finalized submission, as the upstream names it. */
export type FinalBlock = { upstream: string; blockNumber: number; blockHash: string };

const BUSY_MS = 2_000;
const MAX_WEBHOOKS = 1_000;
const MAX_FINALS = 200;

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
        return inspectCurrent(new LedgerDatabase(db, file), found, now);
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
  const routes = new EventRoutes(database);
  const dead = new CommittedChanges<DeadLetters>(database);
  const outbox = new Outbox(database, { routes, dead });
  const webhooks = new Webhooks(database, { routes, outbox, dead });
  return {
    kind: 'current',
    schema,
    hasCredential: new CredentialStore(database).isAnyKept(),
    webhooks: webhooks.list({ limit: MAX_WEBHOOKS, now }).webhooks,
    finals: finalBlocks(database),
  };
}

function finalBlocks(database: LedgerDatabase): FinalBlock[] {
  const rows = database.rows<{ upstream: string; response: string | null }>(
    `SELECT upstream, response FROM submissions JOIN history ON submission = submissions.id AND history.version = submissions.version
      WHERE submissions.status = 'finalized' ORDER BY submissions.id DESC LIMIT ${MAX_FINALS}`,
  );
  return rows.flatMap(({ upstream, response }) => {
    const { block_number: blockNumber, block_hash: blockHash } = dataOf(response) ?? {};
    return typeof blockNumber === 'number' && typeof blockHash === 'string'
      ? [{ upstream, blockNumber, blockHash }]
      : [];
  });
}

const OPEN_TO_OTHERS = 0o077;
const WRITABLE_BY_EVERYONE = 0o002;

/** Checks the ledger without reading all of it: schema, permissions and a failed sync. */
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
  return reported(
    findingOf(file, seen),
    needsRecovery(path) &&
      warning(
        'ledger',
        `the last sync of ${file} failed; the next start replaces it by a verified copy`,
        'check the system log for disk errors, replace the disk, then start the server',
      ),
    ...checkPermissions(file, path),
  );
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

/** Reads all of the ledger, and blocks meanwhile. */
export function checkIntegrity(path: string): Finding {
  try {
    assertIntact(path);
    return ok('ledger.integrity', 'intact, including indexes');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const advice = 'stop the server, keep a copy of the file, and restore the last backup';
    return problem('ledger.integrity', message, advice);
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

export function checkDisk(
  file: string,
  statfs: (path: string) => { bavail: number; bsize: number } = statfsSync,
): Finding {
  const folder = nearestFolder(file);
  const { bavail, bsize } = statfs(folder);
  const freeBytes = bavail * bsize;
  const message = `${(freeBytes / 1e9).toFixed(1)} GB free in ${folder}`;
  const action =
    'free disk space, or stop the server and move the ledger; with a full disk, no submissions can be tracked';
  if (freeBytes < PROBLEM_BYTES) return problem('disk', message, action);
  return freeBytes < WARNING_BYTES ? warning('disk', message, action) : ok('disk', message);
}

/** Returns the directory of a file, or its nearest existing ancestor. */
function nearestFolder(file: string): string {
  const folder = dirname(file);
  return existsSync(folder) || folder === dirname(folder) ? folder : nearestFolder(folder);
}
