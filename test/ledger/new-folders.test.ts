import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isCompilerMissing, openTestDisk } from '../faults/disk/test-disk.ts';
import { readStorageLog } from '../faults/power-loss/storage-log.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

it.skipIf(isCompilerMissing())(
  'the folders that a start creates are on the disk before the ledger is used',
  async () => {
    const recorder = openTestDisk(tempFolder());
    const folders = [
      recorder.root,
      join(recorder.root, 'data'),
      join(recorder.root, 'data/tenants'),
    ];
    const server = startChild(
      new URL('./open-child.ts', import.meta.url),
      [join(folders[2] ?? '', 'a.db')],
      {
        env: recorder.env,
      },
    );
    expect(await server.message()).toEqual({ opened: true });
    const changes = readStorageLog(recorder.log).map(({ change }) => change);
    const opened = new Map(
      changes.flatMap((one) =>
        one.kind === 'opened' && one.isFolder ? [[one.path, one.inode]] : [],
      ),
    );
    const synced = changes.flatMap((one) => (one.kind === 'synced' ? [one.inode] : []));
    for (const folder of folders) expect(synced, folder).toContain(opened.get(folder));
  },
);
