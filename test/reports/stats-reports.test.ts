import { describe, expect, it } from 'vitest';
import { reportMaintenance } from '../../src/reports/feature.ts';
import type { ReportUnit } from '../../src/reports/report-rows-store.ts';
import type { Objective } from '../../src/submissions/objective.ts';
import {
  context,
  FINAL_DATA,
  finalEnvelope,
  observation,
  VERDICTS,
} from '../support/ledger/domain.ts';
import { openLedger, rawConnection, trackRequest } from '../support/ledger/ledger-file.ts';
import { openMaintenance } from '../support/ledger/maintenance.ts';
import { withReports } from '../support/ledger/report-ledger.ts';

type ReportLedger = ReturnType<typeof withReports<ReturnType<typeof openLedger>>>;

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const NOW = 20_000 * DAY_MS + 10 * HOUR_MS;
const DAY = 20_000 * DAY_MS;

const final = (id: string, at: number, data: Record<string, unknown> = {}) =>
  observation({ ...VERDICTS.finalized, envelope: JSON.stringify(finalEnvelope(data)) }, at, id);

function countAll(
  ledger: ReportLedger,
  { metadataKey = null, now = NOW }: { metadataKey?: string | null; now?: number } = {},
) {
  while (ledger.reports.count({ metadataKey, now, limit: 3 }));
}

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
  const ledger = withReports(openLedger());
  finalize(ledger, ['a', 'b']);
  ledger.track(
    ['c', 'd'].map((id) => trackRequest(id, { deadlineAt: NOW + DAY_MS })),
    NOW,
  );
  ledger.cancel(['c'], NOW + 1);
  countAll(ledger);
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

it('counts each change once, in whatever steps, and also after a restart', () => {
  const ids = Array.from({ length: 10 }, (_, index) => `s${index}`);
  const first = withReports(openLedger());
  finalize(first, ids);
  expect(first.reports.count({ metadataKey: null, now: NOW, limit: 14 })).toBe(true);
  first.close();
  const second = withReports(openLedger({ file: first.file }));
  finalize(second, ['later']);
  countAll(second);
  countAll(second);
  expect(rowsOf(second).map(({ sums }) => sums.ended.finalized)).toEqual([11]);
  expect(second.reports.countedUntil()).toBeUndefined();
});

it('keeps amounts exact beyond every number type, and counts those that are no integers', () => {
  const ledger = withReports(openLedger());
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
  countAll(ledger);
  const [row] = rowsOf(ledger);
  expect(String(row?.sums.fees)).toBe(String(2n * BigInt(most)));
  expect(row?.sums).toMatchObject({ dataBilled: 8n, unbilled: 1 });
});

it('a correction adds the difference on its own day', () => {
  const ledger = withReports(openLedger());
  finalize(ledger, ['a']);
  countAll(ledger);
  const error = { ...observation('error', NOW + DAY_MS, 'a') };
  ledger.record([error], { ...context(), recheck: true });
  ledger.record([final('a', NOW + DAY_MS + 1, { fees: '7', data_billed: '3' })], {
    ...context(),
    recheck: true,
  });
  countAll(ledger, { now: NOW + DAY_MS + 1 });
  const rows = rowsOf(ledger).map(({ sums }) => sums);
  expect(rows.map(({ corrected }) => corrected)).toEqual([0, 2]);
  expect(rows.map(({ ended }) => ended.finalized)).toEqual([1, 0]);
  expect(rows.reduce((sum, { fees }) => sum + fees, 0n)).toBe(7n);
  expect(rows.reduce((sum, { dataBilled }) => sum + dataBilled, 0n)).toBe(3n);
  expect(rows.map(({ unbilled }) => unbilled)).toEqual([0, 0]);
  expect(rows.map(({ requests }) => requests)).toEqual([1, 2]);
});

it('counts a submission that was tracked again once for each end, with the requests and the time since then', () => {
  const ledger = withReports(openLedger());
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
  countAll(ledger, { now: NOW + DAY_MS });
  const [row] = rowsOf(ledger);
  expect(row?.sums).toMatchObject({ requests: 3, corrected: 0 });
  expect(row?.sums.ended).toMatchObject({ cancelled: 1, finalized: 1 });
  expect((row?.sums.timeToFinality.percentile(1) ?? 0) / 10_000).toBeCloseTo(1, 0);
});

it('contains the bound of the lag that was recorded with the finality', () => {
  const ledger = withReports(openLedger());
  ledger.track(
    ['a', 'b'].map((id) => trackRequest(id)),
    1_000,
  );
  const found = [final('a', 61_000), final('b', 61_000)] as const;
  ledger.record(found, context(), new Map([[found[0], 60_000]]));
  countAll(ledger);
  const [row] = rowsOf(ledger);
  expect(row?.sums.lag.count).toBe(1);
  expect((row?.sums.lag.percentile(1) ?? 0) / 1_000).toBeCloseTo(1, 0);
});

describe('groups', () => {
  it('are credentials and values of the metadata key, with a group for submissions without one', () => {
    const ledger = withReports(openLedger());
    finalize(ledger, ['a', 'b'], { credential: 7, metadata: { team: 'billing' } });
    finalize(ledger, ['c'], { credential: 0, metadata: { team: 12 } });
    finalize(ledger, ['d']);
    countAll(ledger, { metadataKey: 'team' });
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
    const ledger = withReports(openLedger());
    for (let index = 0; index < 130; index++)
      finalize(ledger, [`s${index}`], {
        metadata: { user: index < 100 ? index : index % 2 ? 3 : `new${index}` },
      });
    countAll(ledger, { metadataKey: 'user' });
    const rows = rowsOf(ledger, 'metadata.user');
    expect(rows).toHaveLength(101);
    const finalizedIn = (kind: string) =>
      rows
        .filter(({ key }) => key.group.kind === kind)
        .reduce((sum, { sums }) => sum + sums.ended.finalized, 0);
    expect([finalizedIn('value'), finalizedIn('other'), finalizedIn('none')]).toEqual([115, 15, 0]);
  });

  it('may have any text as value', () => {
    const ledger = withReports(openLedger());
    for (const [index, team] of ['', '*', '=', "'; DROP TABLE x; --"].entries())
      finalize(ledger, [`s${index}`], { metadata: { team } });
    countAll(ledger, { metadataKey: 'team' });
    const values = rowsOf(ledger, 'metadata.team').map(
      ({ key: { group } }) => group.kind === 'value' && group.value,
    );
    expect(values.toSorted()).toEqual(['', "'; DROP TABLE x; --", '*', '=']);
  });
});

it('a time in the future counts as now', () => {
  const ledger = withReports(openLedger());
  finalize(ledger, ['a'], {}, NOW + 1_000 * DAY_MS);
  countAll(ledger);
  expect(rowsOf(ledger).map(({ key: { start } }) => start)).toEqual([DAY]);
});

it('deletes hours after 8 days and days after 400, of every dimension', () => {
  const ledger = withReports(openLedger());
  for (const daysAgo of [0, 7, 9, 399, 401])
    finalize(ledger, [`s${daysAgo}`], { metadata: { team: 'x' } }, NOW - daysAgo * DAY_MS);
  countAll(ledger, { metadataKey: 'team' });
  while (ledger.reports.prune(NOW, 2));
  const agesOf = (dimension: string, unit: ReportUnit) =>
    rowsOf(ledger, dimension, unit).map(({ key }) => (DAY - key.start) / DAY_MS);
  expect(agesOf('upstream', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('credential', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('metadata.team', 'day')).toEqual([399, 9, 7, 0]);
  expect(agesOf('upstream', 'hour').map((age) => Math.abs(Math.ceil(age)))).toEqual([7, 0]);
});

function openCounting(
  ledger: ReportLedger,
  keeping: Parameters<typeof openMaintenance>[1],
  startMs: number,
  objectives = new Map<string, Objective>(),
) {
  const settings = { metadataKey: null, objectives };
  return openMaintenance(ledger, keeping, startMs, (clock) => [
    reportMaintenance({ reports: ledger.reports, objectives: ledger.objectives, clock, settings }),
  ]);
}

describe('the maintenance', () => {
  it('keeps what ended in time until the objective has judged it', async () => {
    const ledger = withReports(openLedger());
    finalize(ledger, ['a', 'b', 'c'], {}, 0);
    ledger.track([trackRequest('late')], 1);
    const objectives = new Map([['default', { target: 0.99, withinMs: 3 * HOUR_MS }]]);
    const { clock, errors } = openCounting(ledger, { submissions: 0 }, 0, objectives);
    await clock.advance(3 * HOUR_MS + 5 * 60_000);
    expect(ledger.objectives.sum({ upstream: 'default', from: 0, until: DAY_MS })).toEqual({
      good: 3,
      bad: 1,
    });
    expect(ledger.stats.submissionsByStatus()).toMatchObject({ finalized: 0, tracking: 1 });
    expect(errors).toEqual([]);
  });

  it('counts before it deletes, so that deleted submissions stay in the reports', async () => {
    const ledger = withReports(openLedger());
    finalize(ledger, ['a', 'b', 'c'], {}, HOUR_MS);
    const { clock, errors } = openCounting(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
    await clock.advance(2 * 60_000);
    expect(errors).toEqual([]);
    expect(ledger.stats.submissionsByStatus().finalized).toBe(1);
    expect(rowsOf(ledger).map(({ sums }) => sums.ended.finalized)).toEqual([3]);
  });

  it('deletes no submission that could not be counted', async () => {
    const ledger = withReports(openLedger());
    finalize(ledger, ['a', 'b', 'c'], {}, HOUR_MS);
    const db = rawConnection(ledger.file);
    db.exec(
      "CREATE TRIGGER broken BEFORE INSERT ON report_rows BEGIN SELECT RAISE(ABORT, 'broken'); END",
    );
    const { clock, errors } = openCounting(ledger, { submissionsMs: HOUR_MS }, 3 * HOUR_MS);
    await clock.advance(2 * 60_000);
    expect(errors).toHaveLength(1);
    expect(ledger.stats.submissionsByStatus().finalized).toBe(3);
    db.exec('DROP TRIGGER broken');
    await clock.advance(2 * 60_000);
    expect(ledger.stats.submissionsByStatus().finalized).toBe(1);
    expect(rowsOf(ledger).map(({ sums }) => sums.ended.finalized)).toEqual([3]);
  });
});
