import { describe, expect, it } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { API_KEY, useApp } from '../../../support/app/running-app.ts';
import { fillReports, REPORT_SETTINGS } from '../../../support/ledger/report-ledger.ts';
import { cli } from '../../../support/processes/cli.ts';

const app = useApp({ fill: fillReports, adminToken: ADMIN_TOKEN, ...REPORT_SETTINGS });
const today = new Date().toISOString().slice(0, 10);

const run = (args: string[], env: Record<string, string | null> = {}) =>
  cli(['report', ...args], { env: { DAWATCH_URL: app.url, DAWATCH_API_KEY: API_KEY, ...env } });

it('shows a table by day, the total, and the objectives', async () => {
  const { code, stdout, stderr } = await run([]);
  expect([code, stderr]).toEqual([0, '']);
  const lines = stdout.split('\n');
  expect(lines[0]).toMatch(/^day \(UTC\) +upstream +finalized +failed .* fees +billed$/);
  expect(lines[2]).toMatch(new RegExp(`^${today} +default +2 .* 36893488147419103230 +8$`));
  expect(lines[3]).toMatch(
    /^total +3 +0 +0 +0 +0 +1 +0 +3 +4\d(\.\d)? s .* 55340232221128654845 +12$/,
  );
  expect(stdout).toContain(
    'objective of default: 50 % known as final within 60 s\n' +
      '  last 30 days  100 % of 3, 100 % of the error budget left\n',
  );
});

it('prints the JSON of the HTTP interface, or CSV', async () => {
  const { stdout } = await run(['--json', '--interval', 'total', '--by', 'none']);
  expect(JSON.parse(stdout)).toMatchObject({
    interval: 'total',
    rows: [{ submissions: { finalized: 3 } }],
  });
  const csv = await run(['--csv', '--by', 'metadata', '--from', today, '--to', today]);
  expect(csv.stdout).toMatch(
    /^\ufeffstart,group,.*\r\n[\dT:.Z-]+,billing,,false,2,.*\r\n[\dT:.Z-]+,,,false,0,.*\r\n$/,
  );
});

it('groups by credential with the admin token', async () => {
  const { code, stdout } = await run(['--by', 'credential', '--interval', 'total'], {
    DAWATCH_API_KEY: null,
    DAWATCH_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^total +=nightly \(1\) +1 /m);
  const without = await run(['--by', 'credential']);
  expect(without).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('DAWATCH_ADMIN_TOKEN'),
  });
});

describe('exits with 2', () => {
  it.each([
    [['--from', 'yesterday'], 'Expected a day like 2026-01-31'],
    [['--from', '2001-01-01', '--to', '2026-01-01'], 'at most 400 days'],
  ])('for %j', async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });
});
