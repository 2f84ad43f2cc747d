import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { guarded, LedgerError, translated } from './errors.ts';

/**
 * Copies the ledger while a server uses it, checks the copy, and only then gives it its name: `target` is never half a
 * backup. Throws LedgerError where there is no ledger, or `target` exists already.
 */
export async function backupLedger(file: string, target: string): Promise<{ bytes: number }> {
  if (!existsSync(file)) throw new LedgerError('read_only', `there is no ledger at ${file}`);
  if (existsSync(target)) throw new LedgerError('read_only', `${target} exists already: it was left as it is`);
  if (!existsSync(dirname(target))) throw new LedgerError('read_only', `there is no folder ${dirname(target)}`);
  const partial = `${target}.partial`;
  const source = new Database(file, { readonly: true, fileMustExist: true });
  try {
    remove(partial);
    // As the ledger itself: only its owner may read it.
    writeFileSync(partial, '', { mode: 0o600 });
    // Holds one moment of the ledger: without it, every write of the server would start the copy over.
    guarded(file, () => source.exec('BEGIN; SELECT count(*) FROM sqlite_schema'));
    await source.backup(partial);
    const bytes = verify(partial);
    renameSync(partial, target);
    return { bytes };
  } catch (error) {
    throw translated(target, error);
  } finally {
    source.close();
    remove(partial);
  }
}

/** What a backup that was killed, or failed, left behind. */
function remove(partial: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(`${partial}${suffix}`, { force: true });
}

function verify(file: string): number {
  const copy = new Database(file);
  try {
    const verdict = copy.pragma('integrity_check(1)', { simple: true });
    if (verdict !== 'ok') throw new LedgerError('corrupt', `the copy is damaged (${verdict}): it was not kept`);
    return Number(copy.prepare('SELECT page_count * page_size FROM pragma_page_count, pragma_page_size').pluck().get());
  } finally {
    copy.close();
  }
}
