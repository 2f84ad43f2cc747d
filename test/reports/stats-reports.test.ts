import { describe, expect, it } from 'vitest';
import type { ReportUnit } from '../../src/reports/reports-store.ts';
import {
  context,
  FINAL_DATA,
  finalEnvelope,
  observation,
  VERDICTS,
} from '../support/ledger/domain.ts';
import {
  openLedger as openPlainLedger,
  rawConnection,
  trackRequest,
} from '../support/ledger/ledger-file.ts';
import { withReports } from '../support/ledger/report-ledger.ts';

const openLedger = (settings: Parameters<typeof withReports>[1] = {}) =>
  withReports(openPlainLedger(), settings);
type ReportLedger = ReturnType<typeof openLedger>;

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NOW = 20_000 * DAY_MS + 10 * HOUR_MS;
const DAY = 20_000 * DAY_MS;

const final = (id: string, at: number, data: Record<string, unknown> = {}) =>
  observation({ ...VERDICTS.finalized, envelope: JSON.stringify(finalEnvelope(data)) }, at, id);

const byMetadata = (metadataKey: string) => openLedger({ metadataKey });

function rowsOf(ledger: ReportLedger, dimension = 'upstream', unit: ReportUnit = 'day') {
  const all = { from: 0, until: Number.MAX_SAFE_INTEGER, upstream: undefined };
  return [...ledger.reports.rows.read({ unit, dimension, ...all })];
}

/** Tracks submissions and finalizes them 40 s later. */
function finalize(
  ledger: ReportLedger,
  ids: readonly string[],
  fields: Parameters<typeof trackRequest>[1] = {},
  at = NOW,
) {
  ledger.track(
    ids.map((id) => trackRequest(id, { deadlineAt: at + DAY_MS, ...fields })),
    at - 40_000,
  );
  ledger.record(
    ids.map((id) => final(id, at)),
    context(),
  );
}

it('adds up final statuses, times, requests and amounts by day and hour', () => {
  const ledger = openLedger();
  finalize(ledger, ['a', 'b']);
  ledger.track(
    ['c', 'd'].map((id) => trackRequest(id, { deadlineAt: NOW + DAY_MS })),
    NOW,
  );
  ledger.cancel(['c'], NOW + 1);
  const [{ key, sums } = { key: undefined, sums: undefined }, ...more] = rowsOf(ledger);
  expect(more).toEqual([]);
  expect(key).toMatchObject({ start: DAY, upstream: 'default' });
  expect(sums).toMatchObject({
    ended: { finalized: 2, failed: 0, unknown: 0, rejected: 0, expired: 0, cancelled: 1 },
    ...{ corrected: 0, requests: 2, unbilled: 0 },
    fees: 2n * BigInt(String(FINAL_DATA.fees)),
    dataBilled: 8n,
  });
  expect(sums?.timeToFinality.count).toBe(2);
  expect((sums?.timeToFinality.percentile(0.5) ?? 0) / 40_000).toBeCloseTo(1, 0);
  expect(rowsOf(ledger, 'upstream', 'hour').map(({ key: { start } }) => start)).toEqual([
    DAY + 10 * HOUR_MS,
  ]);
});

it('is in the transaction of the final status: both are kept, or none of them', () => {
  const ledger = openLedger();
  ledger.track([trackRequest('a'), trackRequest('b')], 0);
  const db = rawConnection(ledger.file);
  const breakInserts = (table: string) =>
    db.exec(
      `CREATE TRIGGER broken BEFORE INSERT ON ${table} BEGIN SELECT RAISE(ABORT, 'broken'); END`,
    );
  for (const table of ['report_rows', 'outbox']) {
    breakInserts(table);
    expect(() => ledger.record([final('a', 5)], context())).toThrow('broken');
    expect(() => ledger.cancel(['b'], 5)).toThrow('broken');
    db.exec('DROP TRIGGER broken');
    expect(rowsOf(ledger)).toEqual([]);
    expect(ledger.stats.counts(0).submissions.tracking).toBe(2);
  }
  ledger.record([final('a', 5), final('a', 6)], context());
  ledger.cancel(['b', 'b', 'a'], 7);
  expect(rowsOf(ledger).map(({ sums }) => sums)).toMatchObject([
    { ended: { finalized: 1, cancelled: 1 }, corrected: 0, requests: 1 },
  ]);
});

it('keeps amounts exact beyond every number type, and counts those that are no integers', () => {
  const ledger = openLedger();
  const most = '9'.repeat(39);
  ledger.track(
    ['a', 'b', 'c'].map((id) => trackRequest(id)),
    0,
  );
  const wrong = { fees: '1.5', data_billed: null };
  ledger.record(
    [final('a', 5, { fees: most }), final('b', 5, { fees: most }), final('c', 5, wrong)],
    context(),
  );
  const [row] = rowsOf(ledger);
  expect(String(row?.sums.fees)).toBe(String(2n * BigInt(most)));
  expect(row?.sums).toMatchObject({ dataBilled: 8n, unbilled: 1 });
});

it('a correction adds the difference on its own day', () => {
  const ledger = openLedger();
  finalize(ledger, ['a']);
  const error = { ...observation('error', NOW + DAY_MS, 'a') };
  ledger.record([error], { ...context(), recheck: true });
  ledger.record([final('a', NOW + DAY_MS + 1, { fees: '7', data_billed: '3' })], {
    ...context(),
    recheck: true,
  });
  const rows = rowsOf(ledger).map(({ sums }) => sums);
  expect(rows.map(({ corrected }) => corrected)).toEqual([0, 2]);
  expect(rows.map(({ ended }) => ended.finalized)).toEqual([1, 0]);
  expect(rows.reduce((sum, { fees }) => sum + fees, 0n)).toBe(7n);
  expect(rows.reduce((sum, { dataBilled }) => sum + dataBilled, 0n)).toBe(3n);
  expect(rows.map(({ unbilled }) => unbilled)).toEqual([0, 0]);
  expect(rows.map(({ requests }) => requests)).toEqual([1, 2]);
});

it('counts a submission that was tracked again once for each end, with the requests and the time since then', () => {
  const ledger = openLedger();
  const request = trackRequest('a', { deadlineAt: NOW + DAY_MS });
  ledger.track([request], NOW);
  ledger.record([observation('pending', NOW + 1_000, 'a')], context());
  ledger.cancel(['a'], NOW + 2_000);
  ledger.track(
    [{ ...request, retrack: true, named: ['metadata'], metadata: { team: 'x' } }],
    NOW + HOUR_MS,
  );
  ledger.record([observation('pending', NOW + HOUR_MS + 1_000, 'a')], context());
  ledger.record([final('a', NOW + HOUR_MS + 10_000)], context());
  const [row] = rowsOf(ledger);
  expect(row?.sums).toMatchObject({ requests: 3, corrected: 0 });
  expect(row?.sums.ended).toMatchObject({ cancelled: 1, finalized: 1 });
  expect((row?.sums.timeToFinality.percentile(1) ?? 0) / 10_000).toBeCloseTo(1, 0);
});

describe('groups', () => {
  it('are credentials and values of the metadata key, with a group for submissions without one', () => {
    const ledger = byMetadata('team');
    finalize(ledger, ['a', 'b'], { credential: 7, metadata: { team: 'billing' } });
    finalize(ledger, ['c'], { credential: 0, metadata: { team: 12 } });
    finalize(ledger, ['d']);
    const groupsOf = (dimension: string) =>
      rowsOf(ledger, dimension).map(({ key: { group }, sums }) => [group, sums.ended.finalized]);
    expect(groupsOf('credential')).toEqual([
      [{ kind: 'none' }, 1],
      [{ kind: 'value', value: '0' }, 1],
      [{ kind: 'value', value: '7' }, 2],
    ]);
    expect(groupsOf('metadata.team')).toEqual([
      [{ kind: 'none' }, 1],
      [{ kind: 'value', value: '12' }, 1],
      [{ kind: 'value', value: 'billing' }, 2],
    ]);
    expect(groupsOf('metadata.other')).toEqual([]);
  });

  it('beyond the first hundred of a day are one, and nothing is lost', () => {
    const ledger = byMetadata('user');
    for (let index = 0; index < 130; index++)
      finalize(ledger, [`s${index}`], {
        metadata: { user: index < 100 ? index : index % 2 ? 3 : `new${index}` },
      });
    const rows = rowsOf(ledger, 'metadata.user');
    expect(rows).toHaveLength(101);
    const finalizedIn = (kind: string) =>
      rows
        .filter(({ key }) => key.group.kind === kind)
        .reduce((sum, { sums }) => sum + sums.ended.finalized, 0);
    expect([finalizedIn('value'), finalizedIn('other'), finalizedIn('none')]).toEqual([115, 15, 0]);
  });
});

it('deletes hours after 8 days and days after 400, of every dimension', () => {
  const ledger = byMetadata('team');
  for (const daysAgo of [0, 7, 9, 399, 401])
    finalize(ledger, [`s${daysAgo}`], { metadata: { team: 'x' } }, NOW - daysAgo * DAY_MS);
  while (ledger.reports.rows.prune(NOW, 2));
  const agesOf = (dimension: string, unit: ReportUnit) =>
    rowsOf(ledger, dimension, unit).map(({ key }) => (DAY - key.start) / DAY_MS);
  expect(agesOf('upstream', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('credential', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('metadata.team', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('upstream', 'hour').map((age) => Math.abs(Math.ceil(age)))).toEqual([7, 0]);
});
