import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { reportSchema } from '../../src/reports/report-body.ts';
import { call, post, problemOf } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, openApp, useApp } from '../support/app/running-app.ts';
import { DAY_MS, FEES, fillReports, REPORT_SETTINGS } from '../support/ledger/report-ledger.ts';
import { tempFolder } from '../support/temp-folder.ts';

const app = useApp({ fill: fillReports, adminToken: ADMIN_TOKEN, ...REPORT_SETTINGS });
const today = new Date().toISOString().slice(0, 10);
const yesterday = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
const ADMIN = { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` };

async function report(query: string, headers: Record<string, string | string[]> = {}) {
  const response = await call(app.url, `/v1/reports${query}`, { headers });
  expect(response, response.text.slice(0, 300)).toMatchObject({ status: 200 });
  expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
  return reportSchema.strict().parse(JSON.parse(response.text));
}

it('by default has a row for each day and upstream of the last 30 days', async () => {
  const { from, to, rows, total, interval, group_by } = await report('');
  expect({ to, interval, group_by }).toEqual({ to: today, interval: 'day', group_by: 'upstream' });
  expect(Date.parse(to) - Date.parse(from)).toBe(29 * DAY_MS);
  expect(
    rows.map(({ start, group, submissions }) => [start.slice(0, 10), group, submissions.finalized]),
  ).toEqual([
    [yesterday, 'default', 1],
    [today, 'default', 2],
  ]);
  expect(total.submissions).toEqual({
    finalized: 3,
    failed: 0,
    unknown: 0,
    rejected: 0,
    expired: 0,
    cancelled: 1,
  });
});

it('has exact sums of amounts, percentiles, requests and the objective', async () => {
  const { total, objectives } = await report('?interval=total&group_by=none');
  expect(total).toMatchObject({
    ...{ requests: 3, corrected: 0, without_billing: 0, data_billed: '12' },
    fees: String(3n * BigInt(FEES)),
    objective: { good: 3, bad: 0 },
  });
  expect(total.time_to_finality_s?.count).toBe(3);
  expect((total.time_to_finality_s?.p50 ?? 0) / 40).toBeCloseTo(1, 1);
  expect((total.detection_lag_s?.p99 ?? 0) / 1).toBeCloseTo(1, 1);
  expect(total.detection_lag_s).toMatchObject({ count: 3, from_chain: 2 });
  expect(objectives).toEqual([
    {
      ...{ upstream: 'default', target_percent: 50, within_s: 60, good: 3, bad: 0 },
      ...{ attained_percent: 100, error_budget_left: 1 },
      burn_rates: expect.objectContaining({ '3d': 0 }),
    },
    expect.objectContaining({ upstream: 'other', attained_percent: null }),
  ]);
});

it('groups by credential for admins, with the names of the credentials', async () => {
  const { rows } = await report('?interval=total&group_by=credential', ADMIN);
  expect(
    rows.map(({ group, credential_id, submissions }) => [
      group,
      credential_id,
      submissions.finalized,
    ]),
  ).toEqual([
    ['DAWATCH_API_KEY', null, 2],
    ['=nightly', 1, 1],
    [null, null, 0],
  ]);
  const refused = problemOf(await call(app.url, '/v1/reports?group_by=credential'));
  expect(refused).toMatchObject({
    status: 403,
    detail: 'group_by=credential needs the scope operations:read',
  });
});

it('groups by the configured metadata key', async () => {
  const { rows, metadata_key } = await report('?interval=total&group_by=metadata');
  expect(metadata_key).toBe('team');
  expect(rows.map(({ group, other, objective }) => [group, other, objective])).toEqual([
    ['=nightly', false, null],
    ['billing', false, null],
    [null, false, null],
  ]);
});

it('filters by upstream and by days, and has hours', async () => {
  expect((await report('?upstream=other')).rows).toEqual([]);
  const { rows } = await report(`?from=${yesterday}&to=${yesterday}&interval=hour`);
  expect(rows.map(({ submissions }) => submissions.finalized)).toEqual([1]);
  expect((await report('?from=2999-01-01&to=2999-01-02')).rows).toEqual([]);
});

it('contains what has just ended, by the credential that tracked it', async () => {
  const fresh = await openApp({
    database: join(tempFolder(), 'dawatch.db'),
    adminToken: ADMIN_TOKEN,
  });
  onTestFinished(() => fresh.close());
  await post(fresh.url, { submission_ids: ['a', 'b'] });
  await post(fresh.url, { submission_id: 'c' }, { 'x-api-key': ADMIN_TOKEN });
  for (const id of 'abc') await call(fresh.url, `/v1/submissions/${id}`, { method: 'DELETE' });
  const { text } = await call(fresh.url, '/v1/reports?group_by=credential', { headers: ADMIN });
  expect(reportSchema.parse(JSON.parse(text)).rows).toMatchObject([
    { group: 'DAWATCH_ADMIN_TOKEN', credential_id: null, submissions: { cancelled: 1 } },
    { group: 'DAWATCH_API_KEY', credential_id: null, submissions: { cancelled: 2 } },
  ]);
});

describe('as CSV', () => {
  it.each<[string, Record<string, string>]>([
    ['?format=csv', {}],
    ['', { accept: 'text/csv' }],
    ['?format=csv', { accept: 'application/json' }],
  ])('with "%s" and %j', async (query, headers) => {
    const response = await call(app.url, `/v1/reports${query}`, { headers });
    expect(response.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(response.headers['content-disposition']).toMatch(
      /^attachment; filename="dawatch-[\d-]+\.csv"$/,
    );
    const [header = '', ...lines] = response.text.trim().split('\r\n');
    expect(header.split(',').slice(0, 6)).toEqual([
      'start',
      'group',
      'credential_id',
      'other',
      'finalized',
      'failed',
    ]);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.split(',')).toHaveLength(header.split(',').length);
    expect(lines[1]).toContain(String(2n * BigInt(FEES)));
  });

  it('neutralizes values that a spreadsheet would run, round or misread', async () => {
    const { text } = await call(app.url, '/v1/reports?format=csv&group_by=metadata');
    expect(text).toContain(",'=nightly,");
    expect(text).toContain(`,'${FEES},`);
  });

  it('begins with a byte order mark, without which spreadsheets misread UTF-8', async () => {
    const response = await fetch(`${app.url}/v1/reports?format=csv`, {
      headers: { 'x-api-key': API_KEY },
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.subarray(0, 8)).toEqual(Buffer.from('\ufeffstart'));
  });

  it('is not sent to clients that accept JSON, or anything', async () => {
    for (const accept of ['*/*', 'text/csv;q=0.5, application/json'])
      expect(
        (await call(app.url, '/v1/reports', { headers: { accept } })).headers['content-type'],
      ).toContain('json');
  });
});

describe('refuses', () => {
  it.each([
    ['?from=yesterday', 'from', /must be a day like 2026-01-31/],
    ['?from=2026-01-02&to=2026-01-01', 'to', /must not be before from/],
    ['?from=2024-01-01&to=2026-01-01', 'from', /at most 400 days before to/],
    ['?from=2025-01-01&to=2025-06-01&group_by=metadata', 'from', /at most 92 days/],
    ['?from=2026-01-01&to=2026-02-01&interval=hour', 'from', /at most 8 days/],
    ['?interval=hour&group_by=metadata', 'interval', /hours cannot be grouped by metadata/],
    ['?until=2026-01-01', '', /no parameter/],
  ])('%s', async (query, pointer, detail) => {
    const problem = problemOf(await call(app.url, `/v1/reports${query}`));
    expect(problem.status).toBe(400);
    expect(problem.errors?.[0]?.pointer).toBe(pointer);
    expect(problem.detail).toMatch(detail);
  });
});

describe('without the settings', () => {
  const plain = useApp();
  it('there is no objective, and the metadata key is missing', async () => {
    const { objectives, rows } = JSON.parse((await call(plain.url, '/v1/reports')).text);
    expect([objectives, rows]).toEqual([[], []]);
    const refused = problemOf(await call(plain.url, '/v1/reports?group_by=metadata'));
    expect(refused.detail).toBe('query group_by: metadata needs the setting reports.metadata_key');
  });
});
