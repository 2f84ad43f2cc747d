import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { MAX_LOG_BYTES } from '../../../src/ledger/open.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { prepareWorld } from '../support/world.ts';
import { openRecorder } from './recorder.ts';
import type { Acknowledgement, Recording } from './workload.ts';

const MIB = 1024 * 1024;
export const KEPT_BYTES = MAX_LOG_BYTES;
const GROWN_BYTES = 112 * MIB;
/**
 * The maintenance runs a minute after the start. Until shortly before, few submissions are tracked:
 * the record of a fast machine would have gigabytes.
 */
const SLOW_MS = 50_000;
const SLOW_PAUSE_MS = 50;
const METADATA = { note: 'x'.repeat(4_000) };

/**
 * Runs a server whose log a reader keeps until it is large, and records how the server shortens it
 * while clients track submissions.
 */
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
  const slowUntil = performance.now() + SLOW_MS;
  await track(1);
  const reader = new Database(ledger, { readonly: true });
  try {
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM submissions').get();
    while (logBytes() < GROWN_BYTES) await track(500);
  } finally {
    reader.close();
  }
  while (logBytes() > KEPT_BYTES) {
    await track(between(1, 5));
    if (performance.now() < slowUntil) await sleep(SLOW_PAUSE_MS);
  }
  for (let batch = 0; batch < 20; batch++) await track(between(1, 5));
  await server.stop();
  return { recorder, ledger, backups: new Map(), acknowledged, between };
}
