import { expect, it } from 'vitest';
import { openFaultyDisk } from '../../../faults/disk/faulty-disk.ts';
import { isCompilerMissing } from '../../../faults/disk/preload.ts';
import { startChild } from '../../../support/processes/child-process.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const COMMITTING = new URL('./slots-child.ts', import.meta.url);

it.skipIf(isCompilerMissing())('the syncs of many ledgers leave threads for names and files', async () => {
  const folder = tempFolder();
  const disk = openFaultyDisk(folder, folder);
  const child = startChild(COMMITTING, [folder], { env: disk.env });
  expect(await child.message()).toBe('opened');
  disk.set({ syncDelayMs: 1_000 });
  child.process.send('commit');
  expect(await child.message()).toEqual(['read', ...Array(6).fill('sync')]);
});
