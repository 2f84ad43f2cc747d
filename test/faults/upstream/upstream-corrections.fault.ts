import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { sleep } from '../../support/processes/killable-server.ts';
import { openFaultyUpstream } from '../support/faulty-upstream.ts';
import { dataByIdOf } from '../support/stored-data.ts';
import { prepareWorld } from '../support/world.ts';
import { afterFinalized, CORRECTIONS } from './corrections.ts';

const IDS_EACH = 3;

test('an upstream that contradicts a Finalized causes a correction event each time, and no final status is undone', async () => {
  const upstream = await openFaultyUpstream();
  const world = await prepareWorld('upstream corrections', {
    upstreamUrl: upstream.url,
    settings: {
      submissions: { recheck_after_s: 0.5 },
      // A long timeout: an abandoned response does not count, and here the order of the responses
      // matters.
      upstreams: { default: { url: upstream.url, api_key: 'sandbox-key', timeout_s: 8 } },
    },
  });
  upstream.sandboxUrl = world.sandbox.url;
  await world.start();
  const ids = new Map<string, string[]>();
  for (const [name, { responses }] of Object.entries(CORRECTIONS)) {
    const each = world.submit(IDS_EACH);
    upstream.injectFor(each, afterFinalized(responses));
    ids.set(name, each);
  }
  const all = [...ids.values()].flat();
  await world.server.client.track(all);
  for (const id of all) world.expected.set(id, 'finalized');
  const honest = await world.track(50);

  while (watched(world.server.file) > 0) await sleep(100);
  await world.expectSurvived();
  const reported = corrections(world.server.file);
  for (const [name, each] of ids)
    for (const id of each)
      expect([name, reported.get(id) ?? 0], histories(world.server.file, id)).toEqual([
        name,
        CORRECTIONS[name]?.corrections,
      ]);
  for (const id of honest) expect(reported.get(id)).toBeUndefined();
  const expectedData = dataByIdOf(world.server.file);
  const blockOf = (id: string) => `0x${world.sandbox.model.read(id, Date.now())?.block?.hash}`;
  for (const id of world.expected.keys())
    expect(expectedData.get(id)?.block_hash, id).toBe(blockOf(id));
});

/** Open submissions, and final ones with a pending recheck. */
function watched(file: string): number {
  return read(
    file,
    'SELECT count(*) FROM submissions WHERE watched = 1',
    (db) => db.pluck().get() as number,
  );
}

/** Returns the number of reported corrections of each submission. */
function corrections(file: string): Map<string, number> {
  const counted = `
    SELECT s.submission_id, count(*) FROM outbox o JOIN submissions s ON s.id = o.submission
    WHERE o.type = 'submission.corrected' GROUP BY s.id`;
  return new Map(read(file, counted, (db) => db.raw().all() as [string, number][]));
}

/** Returns the states of one submission in order. */
function histories(file: string, id: string): string {
  const rows = `
    SELECT h.status, h.upstream_state, substr(h.response, instr(h.response, 'block_hash'), 24) AS block, s.polls
    FROM history h JOIN submissions s ON s.id = h.submission WHERE s.submission_id = '${id}' ORDER BY h.version`;
  return read(file, rows, (db) => JSON.stringify(db.all()));
}

function read<T>(file: string, sql: string, run: (statement: Database.Statement) => T): T {
  const db = new Database(file, { readonly: true });
  try {
    return run(db.prepare(sql));
  } finally {
    db.close();
  }
}
