import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { allDelivered, eventIdsOf } from '../../support/servers/deliveries.ts';
import { dawatch } from '../support/dawatch.ts';
import { trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';

const PAGE_BYTES = 4_096;

test('a ledger damaged while no server ran is refused unchanged, with advice; a restored one works', async () => {
  const world = await prepareWorld('corrupt page, stopped');
  const { server } = world;
  const backup = join(world.folder, 'backup.db');
  await world.start();
  await world.track(300);
  await allDelivered(server.file, world.expected.size);
  expect(dawatch(server, 'backup', backup)).toMatchObject({ status: 0 });
  await server.stop();
  damage(server.file, world);
  const damaged = readFileSync(server.file);
  server.start();
  expect(await server.exited()).toBe(ExitCode.server);
  expect(server.lines.at(-1)).toMatch(/damaged.*restore a backup/);
  expect(readFileSync(server.file).equals(damaged)).toBe(true);
  expect(dawatch(server, 'restore', backup)).toMatchObject({ status: 0 });
  server.start();
  await server.listening();
  await world.track(50);
  await world.expectSurvived();
});

test('a ledger damaged under a running server is not copied, and the next start refuses it', async () => {
  const world = await prepareWorld('corrupt page, running');
  const { server } = world;
  const backup = join(world.folder, 'backup.db');
  await world.start();
  await world.track(300);
  await allDelivered(server.file, world.expected.size);
  expect(dawatch(server, 'backup', backup)).toMatchObject({ status: 0 });
  damage(server.file, world);
  for (let tried = 0; tried < 5; tried++) {
    const response = await trackOnce(server.url, world.submit(20)).catch(() => undefined);
    console.log(`damaged while it runs, tracking says: ${response?.status ?? 'nothing'}`);
    await sleep(200);
  }
  expect(dawatch(server, 'backup', join(world.folder, 'second.db')).status).not.toBe(0);
  await server.stop();
  server.start();
  expect(await server.exited()).toBe(ExitCode.server);
  expect(dawatch(server, 'restore', backup)).toMatchObject({ status: 0 });
  // Submissions after the backup are in no ledger now.
  const kept = new Set(eventIdsOf(server.file));
  for (const id of world.receiver.bodies.keys())
    if (!kept.has(id)) world.receiver.bodies.delete(id);
  server.start();
  await server.listening();
  await world.track(50);
  await world.expectSurvived();
});

/** Damages random pages in the middle of the file. */
function damage(
  file: string,
  { between }: { between: (min: number, max: number) => number },
): void {
  // Pages that are newer in the WAL hide their damage.
  const db = new Database(file);
  expect(db.pragma('wal_checkpoint(TRUNCATE)')).toMatchObject([{ busy: 0 }]);
  db.close();
  const descriptor = openSync(file, 'r+');
  const pages = Math.floor(fstatSync(descriptor).size / PAGE_BYTES);
  for (let count = 0; count < Math.ceil(pages / 4); count++)
    writeSync(
      descriptor,
      Buffer.alloc(PAGE_BYTES, 0xa5),
      0,
      PAGE_BYTES,
      between(2, pages - 1) * PAGE_BYTES,
    );
  closeSync(descriptor);
}
