import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { tempFolder } from '../../support/temp-folder.ts';
import { isCompilerMissing } from '../disk/test-disk.ts';
import { auditBackupImage, auditLedgerImage } from './image-audit.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { type RecordedChange, readStorageLog } from './storage-log.ts';
import { type Recording, recordWorkload } from './workload.ts';

const IMAGES = Number(process.env.POWER_LOSS_IMAGES ?? 100);
const CONTROL_IMAGES = 10;
/** The workload changes its disk in every way that the recorder knows. */
const EVERY_KIND = [
  'opened',
  'written',
  'truncated',
  'sync_begun',
  'synced',
  'renamed',
  'linked',
  'unlinked',
];

test.skipIf(isCompilerMissing())(
  'a loss of power at any moment loses nothing acknowledged, unless the disk ignores syncs',
  async () => {
    const recording = await recordWorkload();
    const changes = readStorageLog(recording.recorder.log);
    expectCompleteRecord(recording, changes);
    expect(new Set(changes.map(({ change }) => change.kind))).toEqual(new Set(EVERY_KIND));
    expect(await lossesIn(recording, changes, { images: IMAGES, ignoresSyncs: false })).toEqual([]);
    expect(
      await lossesIn(recording, changes, { images: CONTROL_IMAGES, ignoresSyncs: true }),
    ).not.toEqual([]);
  },
);

/**
 * The record must lead to the files as they are: otherwise the recorder has missed a way to change
 * them.
 */
function expectCompleteRecord(
  { recorder, ledger, backups }: Recording,
  changes: readonly RecordedChange[],
): void {
  const disk = new SimulatedDisk(recorder.root);
  for (const { change } of changes) disk.apply(change);
  const copy = tempFolder();
  disk.writeAll(copy);
  for (const file of [ledger, ...backups.keys()])
    expect(readFileSync(join(copy, basename(file))).equals(readFileSync(file)), file).toBe(true);
}

/** Returns what was wrong in each image of a series of random moments. */
async function lossesIn(
  { recorder, ledger, backups, acknowledged, between, random }: Recording,
  changes: readonly RecordedChange[],
  { images, ignoresSyncs }: { images: number; ignoresSyncs: boolean },
): Promise<string[]> {
  const moments = Array.from({ length: images }, () => between(1, changes.length)).sort(
    (a, b) => a - b,
  );
  const disk = new SimulatedDisk(recorder.root, { ignoresSyncs });
  const image = join(tempFolder(), 'image');
  const here = (file: string) => join(image, basename(file));
  const losses: string[] = [];
  for (const [index, { change, end }] of changes.entries()) {
    disk.apply(change);
    for (; moments[0] === index + 1; moments.shift()) {
      mkdirSync(image, { mode: 0o700 });
      disk.writeImage(image, random);
      try {
        const told = acknowledged
          .filter(({ from, to }) => from <= end && end < to)
          .map((one) => (one.kind === 'backup' ? { ...one, file: here(one.file) } : one));
        auditLedgerImage(here(ledger), told);
        for (const [file, ids] of backups) auditBackupImage(here(file), ids);
      } catch (error) {
        losses.push(
          `after change ${index + 1} of ${changes.length}: ${error instanceof Error ? error.message : error}`,
        );
      }
      rmSync(image, { recursive: true });
    }
  }
  console.log(`${images} images of ${changes.length} changes, ${losses.length} with a loss`);
  return losses;
}
