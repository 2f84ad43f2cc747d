import { expect, it } from 'vitest';
import { openLedger } from '../support/ledger/ledger-file.ts';

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
