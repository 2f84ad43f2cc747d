import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { checkLedger } from './check.ts';
import { guarded, LedgerError, translated } from './errors.ts';
import { removeDatabase, syncWithFolder } from './files.ts';
import { lockOf } from './open.ts';

const PAGES_AT_ONCE = 1_000;

/**
 * Copies the ledger while a server uses it, checks the copy, and only then gives it its name: `target` is never half a
 * backup. Throws LedgerError where there is no ledger, `target` exists already, or another backup is writing it.
 */
export async function backupLedger(
  file: string,
  target: string,
  onProgress: (pages: { done: number; total: number }) => void = () => undefined,
): Promise<{ bytes: number }> {
  if (!existsSync(file)) throw new LedgerError('read_only', `there is no ledger at ${file}`);
  if (!existsSync(dirname(target))) throw new LedgerError('read_only', `there is no folder ${dirname(target)}`);
  const partial = `${target}.partial`;
  const source = guarded(file, () => new Database(file, { readonly: true, fileMustExist: true }));
  let release: (() => void) | undefined;
  try {
    release = takeAlone(partial, target);
    if (existsSync(target)) throw new LedgerError('read_only', `${target} exists already: it was left as it is`);
    removeDatabase(partial);
    // As the ledger itself: only its owner may read it.
    writeFileSync(partial, '', { mode: 0o600 });
    // Holds one moment of the ledger: without it, every write of the server would start the copy over.
    guarded(file, () => source.exec('BEGIN; SELECT count(*) FROM sqlite_schema'));
    await source.backup(partial, {
      progress: ({ totalPages, remainingPages }) => {
        onProgress({ done: totalPages - remainingPages, total: totalPages });
        return PAGES_AT_ONCE;
      },
    });
    const { bytes } = checkLedger(partial, 'the copy');
    syncWithFolder(partial);
    renameSync(partial, target);
    syncWithFolder(target);
    return { bytes };
  } catch (error) {
    throw translated(target, error);
  } finally {
    source.close();
    if (release) removeDatabase(partial);
    release?.();
  }
}

/** Two at once would take each other's half for their own. Gives back what ends it. */
function takeAlone(partial: string, target: string): () => void {
  try {
    const lock = lockOf(partial);
    return () => {
      removeDatabase(lock.name);
      lock.close();
    };
  } catch (error) {
    const known = translated(target, error);
    if (!(known instanceof LedgerError) || known.problem !== 'locked') throw known;
    throw new LedgerError('locked', `another backup writes ${target}: wait for it, or take another name`, error);
  }
}
