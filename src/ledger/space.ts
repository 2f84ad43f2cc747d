import { guarded } from './errors.ts';
import type { LedgerDatabase } from './ledger-database.ts';

/** This many free pages, or a tenth of the file if that is more, are kept for future writes. */
const MIN_FREE_PAGES = 256;

/** Returns whether more can be returned. Throws LedgerError. */
export function shrink({ connection, file }: LedgerDatabase, pages: number): boolean {
  const pragma = (name: string) => Number(connection.pragma(name, { simple: true }));
  const spare = () =>
    pragma('freelist_count') - Math.max(MIN_FREE_PAGES, pragma('page_count') / 10);
  return guarded(file, () => {
    const before = spare();
    if (before <= 0) return false;
    connection.pragma(`incremental_vacuum(${pages})`);
    const left = spare();
    // A file that another program has rewritten may not be able to shrink.
    return left > 0 && left < before;
  });
}
