import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { familiesOf, reading, scrape } from '../support/app/metrics.ts';
import { API_KEY, appForTest, useAppWithSandbox } from '../support/app/running-app.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ADMIN = 'an-admin-token-of-this-test-0123456789';
const app = useAppWithSandbox({ adminToken: ADMIN });

async function finalize(): Promise<string> {
  const id = app.submit();
  await post(app.url, { submission_id: id });
  await call(app.url, `${pathOf(id)}/wait?timeout_s=240`);
  return id;
}
const text = async () => (await scrape(app.url)).text;

it('is the text format of Prometheus: each family has a help, a type, and samples of its own', async () => {
  const { status, headers, text } = await scrape(app.url);
  expect([status, headers['content-type']]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  expect(text.endsWith('\n')).toBe(true);
  const families = [...familiesOf(text).values()];
  expect(families.length).toBeGreaterThan(45);
  for (const { name, help, type } of families) {
    expect(name).toMatch(/^(dawatch|process|nodejs)_[a-z0-9_]+$/);
    expect(help.length, name).toBeGreaterThan(10);
    expect(name.endsWith('_total')).toBe(type === 'counter');
  }
});

it('has no sample that is not a number, and no delay of the event loop that was not measured', async () => {
  const fresh = await appForTest();
  for (let count = 0; count < 3; count++) {
    const { text } = await scrape(fresh.url);
    expect(text).not.toMatch(/ NaN$/im);
    expect(reading(text, 'nodejs_eventloop_lag_min_seconds') ?? 0).toBeLessThan(3_600);
  }
});

it('measures a submission from its tracking to its finality', async () => {
  const before = await text();
  await finalize();
  const after = await text();
  const upstream = 'default';
  const grown = (name: string, labels: Record<string, string> = { upstream }) =>
    (reading(after, `dawatch_${name}`, labels) ?? 0) -
    (reading(before, `dawatch_${name}`, labels) ?? 0);
  expect(grown('time_to_finality_seconds_count')).toBe(1);
  const sums = ['detection_lag', 'time_to_finality'].map((name) =>
    grown(`${name}_seconds_sum`, {
      upstream,
      ...(name === 'detection_lag' && { source: 'estimate' }),
    }),
  );
  expect(sums[1]).toBeGreaterThan(0);
  expect(sums).toEqual(sums.toSorted((a, b) => a - b));
  expect(grown('polls_total', { upstream, result: 'finalized' })).toBe(1);
  expect(grown('submissions', { status: 'finalized' })).toBe(1);
  expect(grown('submissions_ended_total', { status: 'finalized' })).toBe(1);
  expect(grown('ledger_commit_duration_seconds_count', {})).toBeGreaterThanOrEqual(2);
});

it('counts responses by route pattern, never by the path of a client', async () => {
  const id = await finalize();
  const wild = `/no/such/${randomUUID()}?secret=${API_KEY}`;
  await call(app.url, wild);
  await call(app.url, wild, { method: 'PROPFIND' });
  const now = await text();
  expect(now).not.toContain(id);
  expect(now).not.toContain(API_KEY);
  expect(now).not.toContain('such');
  const responseCount = (labels: Record<string, string>) =>
    reading(now, 'dawatch_http_requests_total', labels);
  expect(responseCount({ method: 'any', route: 'none', status: '404' })).toBeGreaterThanOrEqual(2);
  expect(
    responseCount({ method: 'GET', route: '/v1/submissions/:id/wait', status: '200' }),
  ).toBeGreaterThanOrEqual(1);
  const routes = familiesOf(now).get('dawatch_http_request_duration_seconds')?.samples ?? [];
  expect(routes.map(({ labels }) => labels.route)).toContain('/v1/submissions');
  // A request that waits for finality would make the server appear slow.
  expect(routes.map(({ labels }) => labels.route)).not.toContain('/v1/submissions/:id/wait');
});

it('equals /v1/overview for submissions and deliveries', async () => {
  await finalize();
  const now = await text();
  const overview = JSON.parse((await call(app.url, '/v1/overview')).text);
  for (const [status, count] of Object.entries(overview.submissions))
    expect(reading(now, 'dawatch_submissions', { status })).toBe(count);
  expect(reading(now, 'dawatch_deliveries_dead')).toBe(overview.deliveries.dead);
  expect(reading(now, 'dawatch_oldest_open_submission_age_seconds')).toBe(0);
});

it('serves the other metrics if the ledger cannot be read', async () => {
  const database = join(tempFolder(), 'dawatch.db');
  const broken = await appForTest({ database });
  const db = new Database(database);
  db.exec('ALTER TABLE deliveries RENAME TO elsewhere');
  db.close();
  const { status, text } = await scrape(broken.url);
  expect(status).toBe(200);
  expect(familiesOf(text).get('dawatch_deliveries_waiting')?.samples).toEqual([]);
  expect(reading(text, 'dawatch_upstream_state', { upstream: 'default', state: 'up' })).toBe(1);
  expect(reading(text, 'process_resident_memory_bytes')).toBeGreaterThan(0);
});
