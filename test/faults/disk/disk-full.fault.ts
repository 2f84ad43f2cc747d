import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { STEP_MS } from '../../support/patience.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openProducer } from '../../support/redis/producer.ts';
import { isRedisMissing, redisForTest } from '../../support/redis/redis-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { readiness, trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';

const MIB = 2 ** 20;
/** An alert reports that less than a tenth is free. */
const DISK_MIB = 100;
const LOW_MIB = 8;
const BATCH = 100;
const RULES = ['disk_low', 'ledger_not_writable'] as const;
const MOUNT = 'mount';
const UMOUNT = 'umount';

type World = Awaited<ReturnType<typeof prepareWorld>>;

test.skipIf(isRedisMissing())(
  'a full disk pauses intake over HTTP and through the queue, loses nothing, and work continues by itself',
  async (context) => {
    const folder = mountSmall();
    if (folder === undefined)
      return context.skip('SKIPPED: no small file system can be mounted here');
    const redis = await redisForTest();
    const world = await prepareWorld('full file system', {
      folder,
      redisUrl: redis.url,
      workers: 1,
    });
    await world.start();
    await world.track(200);
    const ballast = join(folder, 'ballast');
    fill(folder, ballast, LOW_MIB);
    const { client } = world.server;
    // A busy machine may cause others.
    const alertsOfDisk = async (state: 'firing' | 'resolved') => {
      const { alerts } = await client.alerts.list({ state });
      return RULES.filter((rule) => alerts.some((alert) => alert.rule === rule));
    };
    const firing = () => alertsOfDisk('firing');
    const sent = () => [...world.receiver.bodies.values()].flatMap((bodies) => [...bodies]).join();
    await expect.poll(firing).toEqual(['disk_low']);
    await expect.poll(sent).toContain('disk_low');
    const rest = join(folder, 'rest');
    fill(folder, rest, 1);
    await untilRefused(world);
    // A job waits for space, however long that takes.
    const queued = world.submit(BATCH);
    const job = openProducer(redis).enqueue(queued, AbortSignal.timeout(200_000));
    await staysRefused(world);
    await expect.poll(firing).toEqual(RULES);
    expect(await readiness(world.server.url)).toMatchObject({ status: 503 });
    expect(sent()).not.toContain('ledger_not_writable');
    rmSync(ballast);
    rmSync(rest);
    await expectWorking(world);
    await expect.poll(firing).toEqual([]);
    expect(await alertsOfDisk('resolved')).toEqual(RULES);
    await expect.poll(sent).toContain('The ledger can be written again');
    expect(await job).toMatchObject({ accepted: BATCH, already_tracked: 0 });
    for (const id of queued) world.expected.set(id, 'finalized');
    await world.expectSurvived();
  },
);

/** Tracks until the disk is full. Every acknowledged id must become final. */
async function untilRefused(world: World): Promise<void> {
  for (let count = 0; count < 500; count++) {
    const ids = world.submit(BATCH);
    const response = await trackOnce(world.server.url, ids);
    if (response.status !== 202) {
      expect(response).toMatchObject({ status: 507, retryAfter: expect.stringMatching(/^\d+$/) });
      return;
    }
    for (const id of ids) world.expected.set(id, 'finalized');
  }
  throw new Error('the disk was never full');
}

async function staysRefused(world: World): Promise<void> {
  for (let second = 0; second < 2; second++) {
    expect(await trackOnce(world.server.url, world.submit(1_000))).toMatchObject({ status: 507 });
    await sleep(1_000);
  }
  // Stored data can be read.
  const [known = ''] = world.expected.keys();
  expect(await world.server.client.get(known)).toMatchObject({ submission_id: known });
}

/** Waits until tracking works again. */
async function expectWorking(world: World): Promise<void> {
  const since = performance.now();
  const soFar = () => performance.now() - since;
  for (let isTaken = false; !isTaken; await sleep(200)) {
    const ids = world.submit(BATCH);
    isTaken = (await trackOnce(world.server.url, ids)).status === 202;
    if (isTaken) for (const id of ids) world.expected.set(id, 'finalized');
    expect(soFar()).toBeLessThan(STEP_MS);
  }
  while ((await readiness(world.server.url)).status !== 200) {
    expect(soFar()).toBeLessThan(STEP_MS);
    await sleep(200);
  }
  console.log(`ready ${(soFar() / 1_000).toFixed(1)} s after there was room`);
}

/** Returns undefined if this user or machine cannot mount file systems. */
function mountSmall(): string | undefined {
  const folder = join(tempFolder(), 'disk');
  mkdirSync(folder);
  const mounted = spawnSync(MOUNT, ['-t', 'tmpfs', '-o', `size=${DISK_MIB}m`, 'tmpfs', folder]);
  if (mounted.status !== 0) return undefined;
  onTestFinished(() => void spawnSync(UMOUNT, ['-l', folder]));
  return folder;
}

/** Fills the disk except for this rest. */
function fill(folder: string, ballast: string, restMib: number): void {
  const { bavail, bsize } = statfsSync(folder);
  writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - restMib * MIB)));
}
