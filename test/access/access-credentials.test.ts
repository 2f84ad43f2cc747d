import { expect, it, onTestFinished } from 'vitest';
import { CredentialStore } from '../../src/access/credentials-store.ts';
import { openBeside } from '../../src/ledger/open.ts';
import { openLedger, rawConnection } from '../support/ledger/ledger-file.ts';

it('throws if a new credential cannot be committed', () => {
  const ledger = openLedger();
  ledger.close();
  // The commit detects a violation of this constraint, as it detects a full disk.
  rawConnection(ledger.file).exec(`
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER no_commit AFTER INSERT ON credentials BEGIN INSERT INTO children VALUES (1); END`);
  const { database, close } = openBeside({ file: ledger.file, now: 0 });
  onTestFinished(close);
  const store = new CredentialStore(database);
  expect(() =>
    store.add({ hash: Buffer.alloc(32, 7), role: 'service', name: 'billing' }, 0),
  ).toThrow(/FOREIGN KEY/);
  expect(store.get(1)).toBeUndefined();
});

it('finds a credential until it expires, also after a restart', () => {
  const ledger = openLedger();
  const hash = Buffer.alloc(32, 7);
  ledger.credentials.add({ hash, role: 'service', name: 'for a day', expiresAt: 1_000 }, 0);
  const found = () => [999, 1_000, 1_001].map((now) => ledger.credentials.find(hash, now)?.name);
  expect(found()).toEqual(['for a day', undefined, undefined]);
  ledger.close();
  const again = openLedger({ file: ledger.file }).credentials;
  expect(again.find(hash, 999)).toMatchObject({ expiresAt: 1_000 });
  expect(again.find(hash, 1_000)).toBeUndefined();
  expect(again.isAnyKept()).toBe(true);
});
