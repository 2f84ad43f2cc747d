import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/ledger/open.ts';
import { Transactions } from '../../src/ledger/transactions.ts';
import { tempFolder } from '../support/temp-folder.ts';

const FULL = 2;
const NORMAL = 1;

it('only what would be done again does not wait for the disk, and what comes after it does, even if it failed', () => {
  const file = join(tempFolder(), 'dawatch.db');
  const { db, close } = openDatabase({ file, now: 0 });
  onTestFinished(close);
  const transactions = new Transactions(db, file);
  const synchronous = () => db.pragma('synchronous', { simple: true });
  expect(transactions.runUnsynced(synchronous)).toBe(NORMAL);
  expect(transactions.run(synchronous)).toBe(FULL);
  const failing = () =>
    transactions.runUnsynced(() => {
      throw new Error('no');
    });
  expect(failing).toThrow('no');
  expect(transactions.run(synchronous)).toBe(FULL);
  expect(transactions.run(() => transactions.runUnsynced(synchronous))).toBe(FULL);
});
