import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { tempFolder } from '../../support/temp-folder.ts';
import { prepareWorld } from '../support/world.ts';
import { openRecorder } from './recorder.ts';
import type { Acknowledgement, Recording } from './workload.ts';

const MIB = 1024 * 1024;
/** Servers shorten a log to this size (src/ledger/maintenance/space.ts). */
export const KEPT_BYTES = 64 * MIB;
/** Several steps above it. */
const GROWN_BYTES = 112 * MIB;
const METADATA = { note: 'x'.repeat(4_000) };

/** Runs a server whose log a reader keeps until it is large, and records how the server shortens it while clients track submissions. */
export async function recordLargeLog(): Promise<Recording> {
  const folder = tempFolder();
  const recorder = openRecorder(folder);
  const ledger = join(recorder.root, 'ledger.db');
  const acknowledged: Acknowledgement[] = [];
  const { server, between, start } = await prepareWorld('power loss of a large log', {
    folder,
    settings: { database: ledger },
  });
  const track = async (count: number) => {
    const ids = Array.from({ length: count }, () => randomUUID());
    await server.client.track(ids, { metadata: METADATA });
    const told = { from: recorder.position(), to: Number.POSITIVE_INFINITY };
    for (const id of ids) acknowledged.push({ ...told, kind: 'tracked', id });
  };
  const logBytes = () => statSync(`${ledger}-wal`).size;

  await start({ env: recorder.env });
  await track(1);
  const reader = new Database(ledger, { readonly: true });
  try {
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM submissions').get();
    while (logBytes() < GROWN_BYTES) await track(500);
  } finally {
    reader.close();
  }
  // The maintenance runs once a minute.
  while (logBytes() > KEPT_BYTES) await track(between(1, 5));
  for (let batch = 0; batch < 20; batch++) await track(between(1, 5));
  await server.stop();
  return { recorder, ledger, backups: new Map(), acknowledged, between };
}
