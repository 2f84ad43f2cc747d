import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isCompilerMissing } from '../faults/disk/preload.ts';
import { openRecorder } from '../faults/power-loss/recorder.ts';
import { SimulatedDisk } from '../faults/power-loss/simulated-disk.ts';
import { readStorageLog } from '../faults/power-loss/storage-log.ts';
import {
  integrityOf,
  openLedger,
  rawConnection,
  trackRequests,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const OPEN = new URL('./open-child.ts', import.meta.url);
const READER = new URL('./reader-child.ts', import.meta.url);

/**
 * Returns the log that a killed server has left, which another connection reads, and a function
 * that returns what was synced of it since.
 */
function leftLog() {
  const recorder = openRecorder(tempFolder());
  const file = join(recorder.root, 'dawatch.db');
  const earlier = openLedger({ file });
  const reader = rawConnection(file);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM meta').get();
  earlier.track(trackRequests(10_000), 1);
  earlier.close();
  const content = readFileSync(`${file}-wal`);
  expect(content.length).toBeGreaterThan(1_000_000);
  const synced = () => {
    const disk = new SimulatedDisk(recorder.root);
    for (const { change } of readStorageLog(recorder.log)) disk.apply(change);
    const image = join(tempFolder(), 'image');
    // All names, and only the content that was synced.
    const keepsNames = [0.2];
    disk.writeImage(image, () => keepsNames.shift() ?? 0.99);
    return readFileSync(join(image, 'dawatch.db-wal'));
  };
  return { recorder, file, content, synced };
}

it.skipIf(isCompilerMissing())(
  'a start writes the log again and syncs it, also while another connection reads it',
  async () => {
    const { recorder, file, content, synced } = leftLog();
    const server = startChild(OPEN, [file], { env: recorder.env });
    expect(await server.message()).toEqual({ opened: true });
    await server.kill();
    const written = readFileSync(`${file}-wal`);
    expect(written.subarray(0, content.length).equals(content)).toBe(true);
    expect(synced().equals(written)).toBe(true);
  },
);

it.skipIf(isCompilerMissing())(
  'a command that writes does so, too, if no server runs, and syncs its own writes',
  async () => {
    const { recorder, file, content, synced } = leftLog();
    const config = join(tempFolder(), 'dawatch.yaml');
    writeFileSync(config, JSON.stringify({ database: file }));
    await recorder.run(['token', 'create', '--role', 'service', '--name', 'a', '--config', config]);
    const written = readFileSync(`${file}-wal`);
    expect(written.subarray(0, content.length).equals(content)).toBe(true);
    expect(written.length).toBeGreaterThan(content.length);
    expect(synced().equals(written)).toBe(true);
  },
);

it('a start copies again what an earlier copy of the log did not store, if another process has kept the log', async () => {
  const file = join(tempFolder(), 'dawatch.db');
  const first = openLedger({ file });
  first.track(trackRequests(100, 'first-'), 1);
  first.close();
  const stored = readFileSync(file);
  const ledger = openLedger({ file });
  ledger.track(trackRequests(2_000, 'copied-'), 1);
  const reader = startChild(READER, [file]);
  expect(await reader.message()).toBe(2_100);
  ledger.track(trackRequests(50, 'later-'), 1);
  const [copied] = rawConnection(file).pragma('wal_checkpoint(PASSIVE)') as {
    log: number;
    checkpointed: number;
  }[];
  expect(copied?.checkpointed).toBeGreaterThan(100);
  expect(copied?.log).toBeGreaterThan(copied?.checkpointed ?? 0);
  reader.process.send('end');
  expect(await reader.message()).toBe('ended');
  ledger.close();
  expect(readFileSync(file).equals(stored)).toBe(false);
  // The copies did not reach the disk, and the cache has lost them.
  replaceContent(file, stored);

  openLedger({ file }).close();
  await reader.kill();
  const copy = join(tempFolder(), 'copy.db');
  copyFileSync(file, copy);
  expect(integrityOf(copy)).toBe('ok');
  expect(rawConnection(copy).prepare('SELECT count(*) FROM submissions').pluck().get()).toBe(2_150);
});

it.each([
  ['whose pages are not in it again', false],
  ['whose pages are in it again', true],
])(
  'a start is refused while another process uses a log of which a part is missing, %s, and continues without it afterwards',
  async (_, isAgain) => {
    const file = join(tempFolder(), 'dawatch.db');
    const ledger = openLedger({ file });
    ledger.track(trackRequests(500, 'stored-'), 1);
    const reader = startChild(READER, [file]);
    expect(await reader.message()).toBe(500);
    reader.process.send('end');
    expect(await reader.message()).toBe('ended');
    const stored = framesOf(readFileSync(`${file}-wal`)).length;
    for (const prefix of ['lost-', 'last-']) ledger.track(trackRequests(500, prefix), 1);
    ledger.close();
    const log = readFileSync(`${file}-wal`);
    const frames = framesOf(log);
    const lost = frames.findIndex(
      ({ page }, index) =>
        index >= stored && frames.slice(index + 1).some((later) => later.page === page) === isAgain,
    );
    // A sync failed, and the cache has lost a part of what it was for.
    frames[lost]?.bytes.fill(0);
    replaceContent(`${file}-wal`, log);

    expect(() => openLedger({ file })).toThrow(
      /damaged.*stop every other program that has it open and start again/,
    );
    await reader.kill();
    const again = openLedger({ file });
    expect(again.submissions.lookup(['stored-0', 'stored-499', 'last-499']).notFound).toEqual([
      'last-499',
    ]);
    again.track(trackRequests(1, 'later-'), 2);
    again.close();
    expect(integrityOf(file)).toBe('ok');
  },
);

function framesOf(log: Buffer): { page: number; bytes: Buffer }[] {
  const bytes = 24 + log.readUInt32BE(8);
  return Array.from({ length: Math.floor((log.length - 32) / bytes) }, (_, index) => {
    const frame = log.subarray(32 + index * bytes, 32 + (index + 1) * bytes);
    return { page: frame.readUInt32BE(0), bytes: frame };
  });
}

function replaceContent(file: string, content: Buffer): void {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, content, 0, content.length, 0);
  ftruncateSync(descriptor, content.length);
  closeSync(descriptor);
}
