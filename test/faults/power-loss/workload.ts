import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { CRASH_ADMIN_TOKEN, sleep } from '../../support/processes/killable-server.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { prepareWorld } from '../support/world.ts';
import { openRecorder, type Recorder } from './recorder.ts';

/**
 * Something that a client was told. `from`: the position in the record after which it must not be lost. `to`: the position from
 * which it may be gone, because an operator restored a backup or the retention deletes it.
 */
export type Acknowledgement = { from: number; to: number } & (
  | { kind: 'tracked' | 'event' | 'webhook' | 'token'; id: string }
  | { kind: 'status'; id: string; status: string; history: number }
  | { kind: 'deadline'; id: string; deadline: string }
  | { kind: 'backup'; file: string; submissionIds: readonly string[] }
);

export type Recording = {
  recorder: Recorder;
  ledger: string;
  /** Backups by file, with the ids that were acknowledged before they began. */
  backups: ReadonlyMap<string, readonly string[]>;
  acknowledged: readonly Acknowledgement[];
  between: (min: number, max: number) => number;
};

const BATCHES = 10;
const ALWAYS = Number.POSITIVE_INFINITY;

/** Runs the product with every operation that writes to its disk, and records the changes and what clients were told. */
export async function recordWorkload(): Promise<Recording> {
  const folder = tempFolder();
  const recorder = openRecorder(folder);
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
  const { server, between } = world;
  const config = ['--config', join(folder, 'dawatch.yaml')];
  const backups = new Map<string, string[]>();
  const tracked = () => acknowledged.flatMap((one) => (one.kind === 'tracked' && one.to === ALWAYS ? [one.id] : []));
  const forget = (which: (one: Acknowledgement) => boolean) => {
    const to = recorder.position();
    for (const one of acknowledged) if (one.to === ALWAYS && which(one)) one.to = to;
  };

  const start = async () => {
    await world.start({ env: recorder.env });
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
  const admin = async (path: string, body: object) => {
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${CRASH_ADMIN_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(201);
    return (await response.json()) as { id: string };
  };
  const traffic = async (batches: number) => {
    for (let batch = 0; batch < batches; batch++) {
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
        const { id } = await admin('/v1/webhooks', {
          url: `${world.receiver.url}/${batch}`,
          types: ['submission.stuck'],
        });
        acknowledged.push({ ...span(), kind: 'webhook', id });
      }
      await sleep(between(0, 60));
    }
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
  await recorder.run(['vacuum', ...config]);
  await start();
  await traffic(BATCHES);
  await server.stop();

  forget((one) => one.kind !== 'backup' && !beforeBackup.has(one));
  await recorder.run(['restore', join(recorder.root, 'backup.db'), ...config]);
  await start();
  await traffic(BATCHES);
  await server.stop();

  // Ids that the upstream never finds stay open, and retention keeps open submissions.
  const settings = JSON.parse(readFileSync(join(folder, 'dawatch.yaml'), 'utf8'));
  writeFileSync(join(folder, 'dawatch.yaml'), JSON.stringify({ ...settings, retention: { submissions_max: 20 } }));
  forget(({ kind }) => kind !== 'backup' && kind !== 'webhook' && kind !== 'token');
  await start();
  for (let batch = 0; batch < BATCHES; batch++) {
    await track(Array.from({ length: between(1, 20) }, () => randomUUID()));
    await sleep(between(0, 60));
  }
  await Promise.all([backUp('second.db'), sleep(2_000)]);
  await server.stop();
  return { recorder, ledger, backups, acknowledged, between };
}
