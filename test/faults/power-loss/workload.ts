import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { CRASH_ADMIN_TOKEN, sleep } from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { eventually } from '../../support/until.ts';
import { openTestDisk, type TestDisk } from '../disk/test-disk.ts';
import { prepareWorld } from '../support/world.ts';

/**
 * Something that a client was told. `from`: the position in the record after which it must not be
 * lost. `to`: the position from which it may be gone, because an operator restored a backup or the
 * retention deletes it.
 */
export type Acknowledgement = { from: number; to: number } & (
  | { kind: 'tracked' | 'event' | 'webhook' | 'token'; id: string }
  | { kind: 'status'; id: string; status: string; history: number }
  | { kind: 'deadline'; id: string; deadline: string }
  /** Shown as delivered, after this number of attempts. */
  | { kind: 'delivery'; id: number; attempts: number; endedAt: string }
  | { kind: 'backup'; file: string; submissionIds: readonly string[] }
);

export type Recording = {
  recorder: TestDisk;
  ledger: string;
  /** Backups by file, with the ids that were acknowledged before they began. */
  backups: ReadonlyMap<string, readonly string[]>;
  acknowledged: readonly Acknowledgement[];
  between: (min: number, max: number) => number;
  random: () => number;
};

const BATCHES = 10;
const MIN_PRUNED_SUBMISSIONS = 100;
/**
 * Longer than the server keeps ended submissions for the live feed, and than the interval of its
 * maintenance.
 */
const PRUNE_AFTER_MS = 2 * 3_600_000;
const ALWAYS = Number.POSITIVE_INFINITY;

type DeliveryBody = { id: number; attempts_made: number; ended_at: string };

/**
 * Runs the product with every operation that writes to its disk, and records the changes and what
 * clients were told.
 */
export async function recordWorkload(): Promise<Recording> {
  const folder = tempFolder();
  const recorder = openTestDisk(folder);
  const ledger = join(recorder.root, 'ledger.db');
  const acknowledged: Acknowledgement[] = [];
  const span = () => ({ from: recorder.position(), to: ALWAYS });
  const events = new Set<string>();
  // An event that was sent must not be lost, whether the receiver accepts it or not.
  const noteEvent = (id: string) => {
    if (!events.has(id)) acknowledged.push({ ...span(), kind: 'event', id });
    events.add(id);
  };
  const world = await prepareWorld('power loss', {
    folder,
    settings: { database: ledger },
    receiver: { refuseOneOf: 7, onRequest: noteEvent },
  });
  const { server, between, random } = world;
  const config = ['--config', join(folder, 'dawatch.yaml')];
  const backups = new Map<string, string[]>();
  const tracked = () =>
    acknowledged.flatMap((one) => (one.kind === 'tracked' && one.to === ALWAYS ? [one.id] : []));
  const forget = (which: (one: Acknowledgement) => boolean, to = recorder.position()) => {
    for (const one of acknowledged) if (one.to === ALWAYS && which(one)) one.to = to;
  };

  const clockShift = join(folder, 'clock-shift');
  const nodeOptions = ['--import', join(import.meta.dirname, '../support/shifted-clock.mjs')];
  const start = async () => {
    writeFileSync(clockShift, '0');
    await world.start({ nodeOptions, env: { ...recorder.env, SHIFT_FILE: clockShift } });
    await sleep(50);
  };
  const track = async (ids: readonly string[]) => {
    await server.client.track(ids, { metadata: { note: 'x'.repeat(between(0, 600)) } });
    for (const id of ids) acknowledged.push({ ...span(), kind: 'tracked', id });
  };
  const read = async (id: string) => {
    const { status, history } = await server.client.get(id);
    acknowledged.push({ ...span(), kind: 'status', id, status, history: history.length });
  };
  const admin = async (path: string, body?: object) => {
    const response = await fetch(server.url + path, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${CRASH_ADMIN_TOKEN}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(response.status).toBe(body ? 201 : 200);
    return response.json();
  };
  const readDelivered = async () => {
    const { deliveries } = (await admin('/v1/deliveries?state=delivered&limit=200')) as {
      deliveries: DeliveryBody[];
    };
    const told = span();
    const known = new Set(
      acknowledged.flatMap((one) => (one.kind === 'delivery' && one.to === ALWAYS ? [one.id] : [])),
    );
    for (const { id, attempts_made: attempts, ended_at: endedAt } of deliveries)
      if (!known.has(id)) acknowledged.push({ ...told, kind: 'delivery', id, attempts, endedAt });
  };
  let batch = 0;
  const traffic = async (batches: number) => {
    for (const end = batch + batches; batch < end; batch++) {
      const ids = world.submit(between(1, 40));
      await track(ids);
      const [first = '', second = ''] = ids;
      if (batch % 3 === 0) {
        await server.client.cancel(first).catch(() => undefined);
        await read(first);
      }
      if (batch % 4 === 0 && second !== '') {
        const deadline = new Date(Date.now() + between(1_000, 9_000) * 1_000).toISOString();
        const isTaken = await server.client.update(second, { deadline }).then(
          () => true,
          () => false,
        );
        if (isTaken) acknowledged.push({ ...span(), kind: 'deadline', id: second, deadline });
      }
      for (const id of tracked().slice(-5)) await read(id);
      if (batch % 8 === 0) {
        const { id } = (await admin('/v1/webhooks', {
          url: `${world.receiver.url}/${batch}`,
          types: ['submission.stuck'],
        })) as { id: string };
        acknowledged.push({ ...span(), kind: 'webhook', id });
      }
      await readDelivered();
      await sleep(between(0, 60));
      await readDelivered();
    }
  };
  /**
   * Sets the clock forward: what has ended is old, and the maintenance is due. Clients continue
   * until it has run, and it may run again until the server stops.
   */
  const pruneAndStop = async () => {
    await eventually(async () => {
      const { submissions } = await server.client.overview();
      expect(submissions.finalized).toBeGreaterThan(MIN_PRUNED_SUBMISSIONS);
    });
    const to = recorder.position();
    const pruned = () =>
      server.logged('ledger.pruned').reduce((sum, { submissions }) => sum + Number(submissions), 0);
    writeFileSync(clockShift, String(PRUNE_AFTER_MS));
    while (pruned() <= MIN_PRUNED_SUBMISSIONS) await traffic(1);
    await server.stop();
    const isKept = keptBy(ledger);
    forget((one) => !isKept(one), to);
    const forgotten = acknowledged.filter((one) => one.kind === 'tracked' && one.to === to);
    expect(forgotten.length).toBeLessThanOrEqual(pruned());
  };
  const backUp = async (name: string) => {
    const file = join(recorder.root, name);
    const submissionIds = tracked();
    backups.set(file, submissionIds);
    await recorder.run(['backup', file, ...config]);
    acknowledged.push({ ...span(), kind: 'backup', file, submissionIds });
  };

  await start();
  await traffic(BATCHES);
  await recorder.run(['token', 'create', '--role', 'admin', '--name', 'power', ...config]);
  acknowledged.push({ ...span(), kind: 'token', id: 'power' });
  const beforeBackup = new Set(acknowledged);
  await Promise.all([backUp('backup.db'), traffic(BATCHES)]);
  await server.stop();
  await start();
  await traffic(BATCHES);
  await server.stop();

  forget((one) => one.kind !== 'backup' && !beforeBackup.has(one));
  await recorder.run(['restore', join(recorder.root, 'backup.db'), ...config]);
  await start();
  await traffic(BATCHES);
  await server.stop();

  const settings = JSON.parse(readFileSync(join(folder, 'dawatch.yaml'), 'utf8'));
  const retention = { submissions_days: 1 / 24 };
  writeFileSync(join(folder, 'dawatch.yaml'), JSON.stringify({ ...settings, retention }));
  await start();
  await traffic(BATCHES);
  await backUp('second.db');
  await pruneAndStop();
  return { recorder, ledger, backups, acknowledged, between, random };
}

/**
 * Returns whether retention has kept what was acknowledged. It deletes submissions with their
 * events and deliveries.
 */
function keptBy(ledger: string): (one: Acknowledgement) => boolean {
  const db = new Database(ledger, { readonly: true });
  try {
    const kept = new Set(
      db
        .prepare(
          'SELECT submission_id FROM submissions UNION ALL SELECT id FROM outbox UNION ALL SELECT id FROM deliveries',
        )
        .pluck()
        .all(),
    );
    return (one) =>
      one.kind === 'webhook' || one.kind === 'token' || one.kind === 'backup' || kept.has(one.id);
  } finally {
    db.close();
  }
}
