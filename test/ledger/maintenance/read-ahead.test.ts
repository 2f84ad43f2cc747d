import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LedgerDatabase } from '../../../src/ledger/file/ledger-database.ts';
import { isInDiskThread, requestDisk } from '../../../src/ledger/file/sync/disk-requests.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { type EndPosition, searchParameters } from '../../../src/ledger/maintenance/ended.ts';
import { LEAD, PER_REQUEST, QUERIES, type ReadAhead } from '../../../src/ledger/maintenance/read-ahead.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import { allSubmissions, openLedger, rawConnection, trackRequests } from '../../support/ledger/ledger-file.ts';
import { HOUR_MS, openMaintenance } from '../../support/ledger/maintenance.ts';
import { tempFolder } from '../../support/temp-folder.ts';

const FIRST = { endedAt: -1, id: 0 };
const END = { endedAt: HOUR_MS, id: 0 };
const deferredSync = { onFailed: () => undefined };

/** Submissions with metadata that ended at these times. */
function openFinalized(count: number, endedAt = (_index: number) => 1_000): Ledger {
  const ledger = openLedger({ deferredSync });
  const metadata = { shop: 'berlin', order: 7, nested: { a: 1 }, long: 'x'.repeat(300) };
  ledger.track(
    trackRequests(count).map((request) => ({ ...request, metadata })),
    0,
  );
  const observations = Array.from({ length: count }, (_, index) =>
    observation('finalized', endedAt(index), `s${index}`),
  );
  ledger.record(observations, context());
  return ledger;
}

const nextOf = (ahead: ReadAhead) => vi.waitUntil(() => ahead.next(), { timeout: 10_000, interval: 1 });

/** The ends of all ranges. */
async function rangesOf(ahead: ReadAhead): Promise<(EndPosition | null)[]> {
  const ends: (EndPosition | null)[] = [];
  do ends.push((await nextOf(ahead)).through);
  while (ends.at(-1) !== null);
  return ends;
}

it.each([
  ['at different times', (index: number) => index],
  ['at the same time', () => 1_000],
])(
  'submissions that ended %s are returned in order, each after those behind it have been read',
  async (_when, endedAt) => {
    const ledger = openFinalized(1_000, endedAt);
    const ahead = ledger.pruning.readAhead(FIRST, END, 1e9);
    expect(ahead.next()).toBeUndefined();
    const ends = await rangesOf(ahead);
    const expected = Array.from({ length: ends.length - 1 }, (_, index) => PER_REQUEST * (index + 1));
    expect(ends).toEqual([...expected.map((id) => ({ id, endedAt: endedAt(id - 1) })), null]);
    // The last range has everything that was read beyond the one before.
    expect(expected.at(-1)).toBeLessThanOrEqual(1_000 - LEAD);
    expect(ahead.next()).toEqual({ through: null });
  },
);

it('pruning leaves nothing out and deletes nothing that must stay', async () => {
  const ledger = openFinalized(1_000, (index) => index);
  rawConnection(ledger.file).exec(`
    INSERT INTO deliveries (event, destination, state, dead_reason, created_at, ended_at)
    SELECT seq, 'channel:ops', 'dead', 'expired', 0, 0 FROM outbox WHERE submission IN (1, 500, 51)`);
  const { clock, pruned, errors } = openMaintenance(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
  await vi.waitFor(async () => {
    await clock.advance(60_000);
    expect(pruned).toEqual([{ submissions: 996, events: 0, deliveries: 0 }]);
  }, 10_000);
  expect(allSubmissions(ledger).map(({ submissionId }) => submissionId)).toEqual(['s999', 's499', 's50', 's0']);
  expect(errors).toEqual([]);
});

it('pruning continues on the event loop while the other thread is always busy', async () => {
  const ledger = openFinalized(100);
  const busy = vi.spyOn(LedgerDatabase.prototype, 'readAhead').mockReturnValue(false);
  const passing = vi.spyOn(performance, 'now');
  let now = 0;
  passing.mockImplementation(() => (now += 4));
  onTestFinished(() => {
    for (const mock of [busy, passing]) mock.mockRestore();
  });
  const { clock, pruned, errors } = openMaintenance(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
  await clock.advance(5 * 60_000);
  expect([pruned, errors]).toEqual([[{ submissions: 99, events: 0, deliveries: 0 }], []]);
});

it('nothing is read if nothing is old, or if the ledger has no other thread', () => {
  const old = { endedAt: 500, id: 0 };
  expect(openFinalized(10).pruning.readAhead(FIRST, old, 1e9).next()).toEqual({ through: null });
  const ledger = openLedger();
  ledger.track(trackRequests(2), 0);
  ledger.record([observation('finalized', 1, 's0')], context());
  expect(ledger.pruning.readAhead(FIRST, END, 1e9).next()).toEqual({ through: null });
});

it('a read that fails does not prevent pruning', async () => {
  const ledger = openFinalized(1_000);
  rawConnection(ledger.file).exec('DROP INDEX submissions_tracked');
  expect(await rangesOf(ledger.pruning.readAhead(FIRST, END, 1e9))).toEqual([null]);
});

it('every query runs, and finds its rows by indexes', async () => {
  const ledger = openFinalized(100);
  const parameters = searchParameters(FIRST, END, 1e9);
  const result = await read(ledger.file, QUERIES, parameters);
  expect(result).toEqual({
    rows: [
      { endedAt: 1_000, id: PER_REQUEST, count: PER_REQUEST },
      expect.anything(),
      expect.anything(),
      expect.anything(),
    ],
  });
  const db = rawConnection(ledger.file);
  const plans = QUERIES.flatMap(
    (sql) => db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(parameters) as { detail: string }[],
  );
  const scans = plans.map(({ detail }) => detail).filter((detail) => /SCAN|AUTOMATIC/.test(detail));
  expect(plans.filter(({ detail }) => /SEARCH s USING .*INDEX submissions_ended/.test(detail))).toHaveLength(
    QUERIES.length,
  );
  // Subqueries, and the values of the metadata of one row.
  expect(scans.filter((detail) => !/^SCAN (s|\(subquery-\d+\)|json_each VIRTUAL TABLE.*)$/.test(detail))).toEqual([]);
});

it('a missing file is an error', async () => {
  expect(await read(join(tempFolder(), 'missing.db'), ['SELECT 1'], {})).toEqual({
    error: expect.stringContaining('unable to open'),
  });
});

/** Takes a second or more, and keeps the ledger open meanwhile. */
const SLOW =
  'WITH RECURSIVE n (i) AS (SELECT max(id) FROM submissions UNION ALL SELECT i + 1 FROM n WHERE i < 1e6) SELECT count(*) FROM n';

it('a ledger that is closed and opened again during a read is locked, and its log is removed at the end', async () => {
  const ledger = openFinalized(1);
  // The first checkpoint opens a descriptor that is closed with the ledger.
  for (let turn = 0; ledger.stats.bytes().wal < 6 << 20; turn++) ledger.track(trackRequests(300, `t${turn}-`), 0);
  ledger.pruning.submissions({ after: FIRST, before: END, limit: 1 });
  expect(isInDiskThread(ledger.file)).toBe(true);
  await vi.waitUntil(() => !isInDiskThread(ledger.file), { timeout: 10_000 });
  const reading = read(ledger.file, [SLOW], {});
  await new Promise((resolve) => setTimeout(resolve, 200));
  ledger.close();
  const again = new Ledger({ file: ledger.file, now: 1, deferredSync });
  const { ino } = statSync(ledger.file);
  const isLocked = () => readFileSync('/proc/locks', 'utf8').includes(`:${ino} `);
  if (existsSync('/proc/locks')) expect(isLocked()).toBe(true);
  expect(await reading).toEqual({ rows: [{ 'count(*)': expect.any(Number) }] });
  if (existsSync('/proc/locks')) expect(isLocked()).toBe(true);
  const last = read(ledger.file, [SLOW], {});
  await new Promise((resolve) => setTimeout(resolve, 200));
  again.track(trackRequests(1, 'late-'), 1);
  again.close();
  await last;
  expect(existsSync(`${ledger.file}-wal`)).toBe(false);
});

function read(file: string, queries: readonly string[], parameters: Record<string, number>) {
  return new Promise((resolve) => {
    requestDisk({ kind: 'read', file, queries, parameters }, resolve);
  });
}
