import { existsSync, renameSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import { LedgerError } from './errors.ts';

/**
 * Copies the ledger while a server uses it, checks the copy, and only then gives it its name: `target` is never half a
 * backup. Throws LedgerError where there is no ledger, or `target` exists already.
 */
export async function backupLedger(file: string, target: string): Promise<{ bytes: number }> {
  if (!existsSync(file)) throw new LedgerError('read_only', `there is no ledger at ${file}`);
  if (existsSync(target)) throw new LedgerError('read_only', `${target} exists already: it was left as it is`);
  const partial = `${target}.partial`;
  const source = new Database(file, { readonly: true, fileMustExist: true });
  try {
    await source.backup(partial);
    const bytes = verify(partial);
    renameSync(partial, target);
    return { bytes };
  } finally {
    source.close();
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${partial}${suffix}`, { force: true });
  }
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
