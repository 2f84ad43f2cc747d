import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { verifyLedger } from './check.ts';
import { LedgerError, toLedgerError } from './errors.ts';
import { createPrivateFile } from './files.ts';
import { openSnapshot } from './open.ts';
import { openStaging, publish, refuseTaken, type Staging } from './staging.ts';

/**
 * Pages that are copied, and then synced, at once. More would delay a server on the same disk: its
 * reads and syncs wait behind what the copy writes.
 */
const PAGES_AT_ONCE = 256;

/** `done` and `total`: pages. */
export type BackupStep = { kind: 'copying'; done: number; total: number } | { kind: 'checking' };

/**
 * Copies the ledger, which a server may be using, checks the copy, and then moves it to `target`,
 * which is never incomplete. Throws LedgerError if there is no ledger, `target` exists, or another
 * backup is writing it.
 */
export async function backupLedger(
  file: string,
  target: string,
  onStep: (step: BackupStep) => void = () => undefined,
): Promise<{ bytes: number }> {
  if (target === '') throw new LedgerError('read_only', 'the path of the backup is empty');
  // A read transaction: without it, every write of the server would restart the copy.
  const source = openSnapshot(file);
  let staging: Staging | undefined;
  try {
    refuseTaken(target);
    staging = openStaging(target);
    createPrivateFile(staging.file);
    await copyPages(source, staging.file, onStep);
    // The check takes longer than the copy, and a server cannot shorten its log while the snapshot
    // is open.
    source.close();
    onStep({ kind: 'checking' });
    const { bytes } = verifyLedger(staging.file, 'the copy');
    publish(staging.file, target);
    return { bytes };
  } catch (error) {
    throw toLedgerError(target, error);
  } finally {
    source.close();
    staging?.close();
  }
}

async function copyPages(
  source: Database.Database,
  to: string,
  onStep: (step: BackupStep) => void,
): Promise<void> {
  const descriptor = openSync(to, 'r');
  try {
    await source.backup(to, {
      progress({ totalPages, remainingPages }) {
        const done = totalPages - remainingPages;
        onStep({ kind: 'copying', done, total: totalPages });
        fdatasyncSync(descriptor);
        return PAGES_AT_ONCE;
      },
    });
  } finally {
    closeSync(descriptor);
  }
}
