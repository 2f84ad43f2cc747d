import { spawnSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { COMPILED, MAIN } from '../../support/processes/child-process.ts';
import type { KillableServer } from '../../support/processes/killable-server.ts';
import { allDelivered } from '../../support/servers/deliveries.ts';
import { prepareWorld } from '../support/world.ts';

const PAGE_BYTES = 4_096;

test('a ledger damaged under a running server is not copied, and the next start refuses it unchanged, with advice; a restored one works', async () => {
  const world = await prepareWorld('corrupt page');
  const { server } = world;
  const backup = join(world.folder, 'backup.db');
  await world.start();
  await world.track(300);
  await allDelivered(server.file, world.expected.size);
  expect(dawatch(server, 'backup', backup)).toMatchObject({ status: 0 });
  damage(server.file, world);
  expect(dawatch(server, 'backup', join(world.folder, 'second.db')).status).not.toBe(0);
  await server.stop();
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

/** Runs a short command with the settings of a server: `dawatch backup …`. */
function dawatch({ folder }: KillableServer, ...args: string[]) {
  const config = ['--config', `${folder}/dawatch.yaml`];
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, ...args, ...config], {
    encoding: 'utf8',
    env: COMPILED,
  });
  return { status, output: stdout + stderr };
}
