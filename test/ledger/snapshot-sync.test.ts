import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { backupLedger } from '../../src/ledger/backup.ts';
import { inspectLedger } from '../../src/operations/doctor/ledger.ts';
import { openLedger, trackRequest } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

it('a command beside a server shows nothing that the disk does not store', async () => {
  const ledger = openLedger({ deferredSync: { onFailed: () => undefined } });
  const { file } = ledger;
  ledger.track([trackRequest('a')], 1);
  await ledger.whenDurable();
  failSyncs();
  const failed = 'the disk failed while using';
  await expect(backupLedger(file, join(tempFolder(), 'copy.db'))).rejects.toThrow(failed);
  expect(inspectLedger(file, 1)).toMatchObject({ kind: 'refused', problem: 'io' });
});

/** Makes the syncs that a command waits for fail, until the test ends. */
function failSyncs(): void {
  const { fdatasyncSync } = fs;
  fs.fdatasyncSync = () => {
    throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
  };
  syncBuiltinESMExports();
  onTestFinished(() => {
    fs.fdatasyncSync = fdatasyncSync;
    syncBuiltinESMExports();
  });
}
