import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isCompilerMissing, openTestDisk } from '../faults/disk/test-disk.ts';
import { SimulatedDisk } from '../faults/power-loss/simulated-disk.ts';
import { readStorageLog } from '../faults/power-loss/storage-log.ts';
import { auditLedger } from '../support/ledger/audit.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { seeded } from '../support/seed.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { IDS, leaveFailed, MARKER } from './failed-sync.ts';

const OPEN = new URL('./open-child.ts', import.meta.url);

it.skipIf(isCompilerMissing())(
  'a start after a failed sync loses nothing if it is killed, or the power fails, after any change of a file',
  async () => {
    const recorder = openTestDisk(tempFolder({ inMemory: true }));
    const left = leaveFailed(join(tempFolder({ inMemory: true }), 'left'));
    const file = join(recorder.root, 'dawatch.db');
    writeRecorded(left, file, recorder.env);
    const first = readStorageLog(recorder.log).length;
    const server = startChild(OPEN, [file], { env: recorder.env });
    expect(await server.message()).toEqual({ opened: true });
    await server.kill();
    const disk = new SimulatedDisk(recorder.root);
    const changes = readStorageLog(recorder.log);
    const kinds = new Set<string>();
    const { random } = seeded('recovery');
    for (const [index, { change }] of changes.entries()) {
      disk.apply(change);
      if (index < first || (change.kind === 'written' && index % 20 > 0)) continue;
      kinds.add(change.kind);
      for (const write of ['writeAll', 'writeImage'] as const) {
        const image = join(tempFolder({ inMemory: true }), 'image');
        mkdirSync(image, { mode: 0o700 });
        disk[write](image, random);
        openLedger({ file: join(image, 'dawatch.db') }).close();
        auditLedger(join(image, 'dawatch.db'), IDS);
        rmSync(image, { recursive: true });
      }
    }
    expect([...kinds]).toEqual(expect.arrayContaining(['linked', 'renamed', 'unlinked', 'synced']));
  },
);

/** Writes the ledger in a recorded process, and syncs it. */
function writeRecorded(from: string, to: string, env: Record<string, string>): void {
  const script = `
    const fs = require('node:fs');
    for (const suffix of ['', '-wal', '${MARKER}'])
      fs.writeFileSync('${to}' + suffix, fs.readFileSync('${from}' + suffix), { mode: 0o600, flush: true });
    fs.fsyncSync(fs.openSync(require('node:path').dirname('${to}'), 'r'));`;
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(status).toBe(0);
}
