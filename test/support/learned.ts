import { join } from 'node:path';
import { Ledger } from '../../src/ledger/ledger.ts';
import { writeLearned } from '../../src/monitor/learned.ts';
import { tempFolder } from './temp-folder.ts';

/** What a process has learned by `now`: blocks every 20 s, the newest (number 20) just now; final after 40 s; groups of three. */
export function learnedBy(now: number): string {
  const ticks = Array.from({ length: 20 }, (_, index) => {
    const at = now - (19 - index) * 20_000;
    return { block: index + 1, after: at - 50, by: at + 50 };
  });
  const groups = { meanSize: 3, youngestMs: Array(8).fill(40_000), distances: Array(8).fill(1) };
  return writeLearned({ ticks, enough: 3, groups, disorder: 0 });
}

/** The file of a ledger with that in it, about the upstream `default`. */
export function ledgerThatLearned(): string {
  const file = join(tempFolder(), 'dawatch.db');
  const ledger = new Ledger({ file, now: 0 });
  ledger.upstream('default');
  ledger.recordAsking('default', 0, learnedBy(Date.now()));
  ledger.close();
  return file;
}
