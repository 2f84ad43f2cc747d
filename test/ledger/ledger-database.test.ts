import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { LedgerDatabase } from '../../src/ledger/ledger-database.ts';
import { openDatabase } from '../../src/ledger/open.ts';
import { tempFolder } from '../support/temp-folder.ts';

function openTransactions() {
  const file = join(tempFolder(), 'dawatch.db');
  const { db, close } = openDatabase({ file, now: 0 });
  onTestFinished(close);
  return { file, db, transactions: new LedgerDatabase(db, file) };
}

it('a snapshot reads as of one moment during writes of others, and later reads are newer', () => {
  const { file, db, transactions } = openTransactions();
  const other = new Database(file);
  onTestFinished(() => {
    other.close();
  });
  const name = db.prepare("SELECT value FROM meta WHERE key = 'name'").pluck();
  const rename = other.prepare(
    "INSERT INTO meta VALUES ('name', ?) ON CONFLICT DO UPDATE SET value = excluded.value",
  );
  rename.run('old');
  const seen = transactions.snapshot(() => {
    const before = name.get();
    rename.run('new');
    return [before, name.get()];
  });
  expect(seen).toEqual(['old', 'old']);
  expect(transactions.snapshot(() => name.get())).toBe('new');
});

it('a snapshot inside a transaction sees its writes, and a failed snapshot leaves no transaction open', () => {
  const { db, transactions } = openTransactions();
  const count = db.prepare('SELECT count(*) FROM upstreams').pluck();
  const inside = transactions.transaction(() => {
    db.exec("INSERT INTO upstreams (name) VALUES ('default')");
    return transactions.snapshot(() => count.get());
  });
  expect(inside).toBe(1);
  const failing = () =>
    transactions.snapshot(() => {
      throw new Error('no');
    });
  expect(failing).toThrow('no');
  expect(() =>
    transactions.snapshot(() => transactions.transaction(() => db.exec('DELETE FROM upstreams'))),
  ).toThrow('nothing');
  expect(db.inTransaction).toBe(false);
  expect(transactions.transaction(() => count.get())).toBe(1);
});
