import { describe, expect, test } from 'vitest';
import { sleep, trackUntilAcknowledged } from '../../support/processes/killable-server.ts';
import { openReceiver } from '../../support/servers/receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { readiness, trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';
import { openFaultyDisk } from './faulty-disk.ts';
import { isCompilerMissing } from './preload.ts';

const BATCH = 20;
const SERVER_EXIT = 5;

describe.skipIf(isCompilerMissing())('a disk that fails loses nothing that was acknowledged', () => {
  test.each([
    ['of the log', { syncFailures: 1 }],
    ['of a checkpoint', { databaseSyncFailures: 1 }],
  ])(
    'a failed sync %s: the server exits, acknowledges nothing of it, and works again after a restart',
    async (what, faults) => {
      const { world, disk, start } = await prepareFailing(`failed sync ${what}`);
      await start();
      await world.track(200);
      disk.set(faults);
      const unacknowledged = await trackUntilGone(world);
      expect(disk.failedSyncs()).toBe(1);
      await expectOneLine(world);
      await start();
      await trackAgain(world, unacknowledged);
      await world.track(BATCH);
      await world.expectSurvived();
    },
  );

  test('failed syncs without end: the server does not start until the disk is replaced', async () => {
    const { world, disk, start } = await prepareFailing('failed syncs');
    await start();
    await world.track(200);
    disk.set({ syncFailures: -1 });
    const unacknowledged = await trackUntilGone(world);
    await expectOneLine(world);
    world.server.start({ env: disk.env });
    expect(await world.server.exited()).toBe(SERVER_EXIT);
    expect(world.server.lines.at(-1)).toContain('the disk failed while using');
    disk.set({});
    await start();
    await trackAgain(world, unacknowledged);
    await world.expectSurvived();
  });

  test.each([
    ['once', 1, 0],
    ['for seconds', -1, 4_000],
  ])('failed writes, %s: nothing is acknowledged meanwhile, and work continues by itself', async (_, failures, ms) => {
    const { world, disk, start } = await prepareFailing('failed writes');
    await start();
    await world.track(200);
    disk.set({ writeFailures: failures });
    const until = performance.now() + ms;
    let refused = 0;
    do {
      const ids = world.submit(BATCH);
      const { status } = await trackOnce(world.server.url, ids);
      if (status === 202) for (const id of ids) world.expected.set(id, 'finalized');
      else refused += 1;
      expect([202, 503]).toContain(status);
      if (failures < 0) {
        expect(status).toBe(503);
        expect((await readiness(world.server.url)).status).toBe(503);
      }
      await sleep(50);
    } while (performance.now() < until || (failures < 0 && refused <= 10));
    if (failures < 0) {
      // The service behind the heartbeat alerts once.
      expect(world.server.logged('heartbeat.withheld')).toHaveLength(1);
    }
    disk.set({});
    while ((await readiness(world.server.url)).status !== 200) await sleep(50);
    await world.track(BATCH);
    await world.expectSurvived();
  });
});

async function prepareFailing(name: string) {
  const folder = tempFolder();
  const disk = openFaultyDisk(folder, folder);
  const heartbeat = { url: (await openReceiver()).url, every_s: 1 };
  const world = await prepareWorld(name, { folder, settings: { heartbeat } });
  return { world, disk, start: () => world.start({ env: disk.env }) };
}

type World = Awaited<ReturnType<typeof prepareWorld>>;

/** Tracks until the server has ended. Every acknowledged id must become final. Returns the others. */
async function trackUntilGone(world: World): Promise<string[]> {
  const unacknowledged: string[] = [];
  while (!world.server.isGone()) {
    const ids = world.submit(BATCH);
    const status = await trackOnce(world.server.url, ids).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 202) for (const id of ids) world.expected.set(id, 'finalized');
    else unacknowledged.push(...ids);
    expect([0, 202, 503]).toContain(status);
  }
  expect(await world.server.exited()).toBe(SERVER_EXIT);
  return unacknowledged;
}

/** As a careful backend does: what was not acknowledged may have been committed or not. */
async function trackAgain(world: World, ids: readonly string[]): Promise<void> {
  await trackUntilAcknowledged(world.server.client, ids);
  for (const id of ids) world.expected.set(id, 'finalized');
}

async function expectOneLine(world: World): Promise<void> {
  expect(world.server.logged('ledger.sync_failed')).toMatchObject([
    { err: { type: 'LedgerError', message: expect.stringContaining('the disk failed while using') } },
  ]);
}
