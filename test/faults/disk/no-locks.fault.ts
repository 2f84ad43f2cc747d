import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openLedger } from '../../support/ledger/ledger-file.ts';
import { cliProcess } from '../../support/processes/cli.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { isCompilerMissing, openTestDisk } from './test-disk.ts';

it.skipIf(isCompilerMissing())(
  'a file system without locks is named by the start, a backup and the doctor',
  async () => {
    const { root, env } = openTestDisk(tempFolder(), { records: false });
    const at = {
      env: {
        ...env,
        TEST_DISK_NO_LOCKS: '1',
        DAWATCH_DATABASE: join(root, 'dawatch.db'),
        DAWATCH_UPSTREAM_URL: 'http://127.0.0.1:1',
      },
    };
    const message = /the file system of .* has no locks, such as some NFS/;
    expect((await cliProcess(['serve'], at)).stderr).toMatch(message);
    expect((await cliProcess(['doctor'], at)).stdout).toMatch(message);
    const local = { env: { ...at.env, DAWATCH_DATABASE: openLedger().file } };
    expect((await cliProcess(['backup', join(root, 'copy.db')], local)).stderr).toMatch(message);
    expect(readdirSync(root).filter((name) => name.includes('partial'))).toEqual([]);
  },
);
