import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openApp } from '../support/app/running-app.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

it('a ledger that cannot be claimed is closed, so that the next start can open it', async () => {
  const database = join(tempFolder(), 'ledger.db');
  const primary = `${database}.primary`;
  mkdirSync(primary);
  await expect(openApp({ database })).rejects.toThrow(primary);
  rmdirSync(primary);
  expect(openLedger({ file: database }).claim(0)).toMatchObject({ generation: 1 });
});
