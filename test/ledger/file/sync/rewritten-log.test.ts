import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isCompilerMissing } from '../../../faults/disk/preload.ts';
import { openRecorder } from '../../../faults/power-loss/recorder.ts';
import { SimulatedDisk } from '../../../faults/power-loss/simulated-disk.ts';
import { readStorageLog } from '../../../faults/power-loss/storage-log.ts';
import { openLedger, rawConnection, trackRequests } from '../../../support/ledger/ledger-file.ts';
import { startChild } from '../../../support/processes/child-process.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const OPEN = new URL('../open-child.ts', import.meta.url);

it.skipIf(isCompilerMissing())(
  'a start writes the log again and syncs it, also while another connection reads it',
  async () => {
    const recorder = openRecorder(tempFolder());
    const file = join(recorder.root, 'dawatch.db');
    const earlier = openLedger({ file });
    const reader = rawConnection(file);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM meta').get();
    earlier.track(trackRequests(10_000), 1);
    earlier.close();
    const logBytes = statSync(`${file}-wal`).size;
    expect(logBytes).toBeGreaterThan(1_000_000);
    const before = readFileSync(`${file}-wal`);

    const server = startChild(OPEN, [file], { env: recorder.env });
    expect(await server.message()).toEqual({ opened: true });
    await server.kill();

    const written = readFileSync(`${file}-wal`);
    expect(written.subarray(0, logBytes).equals(before)).toBe(true);
    const disk = new SimulatedDisk(recorder.root);
    for (const { change } of readStorageLog(recorder.log)) disk.apply(change);
    const image = join(tempFolder(), 'image');
    // All names, and only the content that the server itself has synced.
    const keepsNames = [0.2];
    disk.writeImage(image, () => keepsNames.shift() ?? 0.99);
    expect(readFileSync(join(image, 'dawatch.db-wal')).equals(written)).toBe(true);
  },
);
