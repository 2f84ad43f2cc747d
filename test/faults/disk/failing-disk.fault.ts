import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { auditLedger } from '../../support/ledger/audit.ts';
import { STEP_MS } from '../../support/patience.ts';
import { sleep, trackUntilAcknowledged } from '../../support/processes/killable-server.ts';
import { openReceiver } from '../../support/servers/receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { until } from '../../support/until.ts';
import { readiness, trackOnce } from '../support/requests.ts';
import { prepareWorld } from '../support/world.ts';
import { type Faults, isCompilerMissing, openTestDisk } from './test-disk.ts';

const BATCH = 2;
const CLIENTS = 16;
/** Acknowledged submissions under load before a disk fails. */
const LOAD = 50;
const FAILS_FOR_MS = 1_500;

describe.skipIf(isCompilerMissing())(
  'a disk that fails loses nothing that was acknowledged',
  () => {
    test('a failed sync of the ledger: the server exits, and works again after a restart', async () => {
      const failing = await prepareFailing('failed sync of the ledger');
      await failing.failSync({ ledgerSyncFailures: 1 }, 'ledger.db');
      await failing.expectRecovered();
    });

    test('failed syncs of the log without end: the server does not start until the disk is replaced', async () => {
      const failing = await prepareFailing('failed syncs of the log');
      const { disk } = failing;
      await failing.failSync({ logSyncFailures: -1 }, 'ledger.db-wal');
      await failing.expectNoStart();
      disk.drop();
      disk.set({});
      await failing.expectRecovered();
    });

    test('failed writes for seconds: nothing is acknowledged meanwhile, and work continues by itself', async () => {
      const failing = await prepareFailing('failed writes for seconds');
      const { disk } = failing;
      disk.set({ writeFailures: -1 });
      await failing.expectRefused();
      disk.set({});
      await failing.expectRecovered();
    });
  },
);

function syncFailed(file: string) {
  const start = `the disk failed while using ${file}, a sync returned an error; the next start copies the ledger to a new file: `;
  const err = expect.objectContaining({ message: expect.stringContaining(start) });
  return expect.objectContaining({ event: 'ledger.sync_failed', err });
}

/** A server with tracked submissions on a disk that can fail. */
async function prepareFailing(name: string) {
  const folder = tempFolder();
  const disk = openTestDisk(folder);
  const heartbeats = await openReceiver();
  const world = await prepareWorld(name, {
    folder,
    settings: {
      database: join(disk.root, 'ledger.db'),
      heartbeat: { url: heartbeats.url, every_s: 1 },
    },
  });
  const { server } = world;
  /** Committed or not. */
  const unacknowledged: string[] = [];
  /**
   * Tracks new ids once, and returns the status of the response; 0 without one. Every acknowledged
   * id must become final.
   */
  const track = async (): Promise<number> => {
    const ids = world.submit(BATCH);
    const status = await trackOnce(server.url, ids).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 202) for (const id of ids) world.expected.set(id, 'finalized');
    else unacknowledged.push(...ids);
    expect([0, 202, 503]).toContain(status);
    return status;
  };
  const start = () => world.start({ env: disk.env });
  await start();
  await world.track(50);
  return {
    disk,
    /**
     * Tracks until the server has ended because of `faults`, with one alert. The faults begin under
     * load, so that the sync that fails covers requests. The file has then lost what that sync
     * failed to store, and the ledger contains everything acknowledged nevertheless.
     */
    async failSync(faults: Faults, file: string): Promise<void> {
      const loaded = world.expected.size + LOAD;
      const endsBy = performance.now() + STEP_MS;
      const load = async () => {
        while (!server.isGone()) {
          await track();
          if (performance.now() > endsBy) throw new Error('the server does not end');
        }
      };
      await Promise.all([
        ...Array.from({ length: CLIENTS }, load),
        until(() => world.expected.size >= loaded).then(() => disk.set(faults)),
      ]);
      expect(await server.exited()).toBe(ExitCode.server);
      expect(disk.failedSyncs()).toBe(1);
      // On a busy machine, responses of the upstream may be late.
      const alerts = server
        .loggedAt('error', 'fatal')
        .filter(({ event }) => event !== 'upstream.down');
      expect(alerts).toEqual([syncFailed(server.file)]);
      expect(existsSync(`${server.file}.sync-failed`)).toBe(true);
      expect(disk.drop()).toContain(file);
      const copy = tempFolder();
      cpSync(disk.root, copy, { recursive: true });
      auditLedger(join(copy, 'ledger.db'), world.expected.keys());
    },
    /**
     * For some seconds, no request is acknowledged, the server is not ready, and the service behind
     * the heartbeat alerts.
     */
    async expectRefused(): Promise<void> {
      const recoversAt = performance.now() + FAILS_FOR_MS;
      const failedWrites = disk.failedWrites();
      for (let refused = 0; performance.now() < recoversAt || refused <= 10; refused++) {
        expect(await track()).toBe(503);
        expect((await readiness(server.url)).status).toBe(503);
        await sleep(100);
      }
      expect(disk.failedWrites() - failedWrites).toBeGreaterThan(10);
      await until(() => server.logged('heartbeat.withheld').length > 0);
      expect(server.logged('heartbeat.withheld')).toHaveLength(1);
    },
    /** A start ends with the reason, and without a heartbeat. */
    async expectNoStart(): Promise<void> {
      const failures = () => disk.failedSyncs() + disk.failedWrites();
      const before = { failures: failures(), heartbeats: heartbeats.requests.length };
      server.start({ env: disk.env });
      expect(await server.exited()).toBe(ExitCode.server);
      expect(server.lines.at(-1)).toContain(`the disk failed while using ${server.file}`);
      expect(failures()).toBeGreaterThan(before.failures);
      expect(heartbeats.requests).toHaveLength(before.heartbeats);
    },
    /**
     * The disk works again: the server does, too, and a careful backend repeats what was not
     * acknowledged.
     */
    async expectRecovered(): Promise<void> {
      if (server.isGone()) await start();
      expect(existsSync(`${server.file}.sync-failed`)).toBe(false);
      expect(server.logged('ledger.recovering').length > 0).toBe(disk.failedSyncs() > 0);
      while ((await readiness(server.url)).status !== 200) await sleep(50);
      // The failed write may have been that of a poll.
      if (unacknowledged.length > 0) await trackUntilAcknowledged(server.client, unacknowledged);
      for (const id of unacknowledged) world.expected.set(id, 'finalized');
      await world.track(BATCH);
      await world.expectSurvived();
    },
  };
}
