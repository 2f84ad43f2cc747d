import { expect, it } from 'vitest';
import { FinalitySums, SUM_UNITS } from '../../src/submissions/ledger-stats.ts';
import { openLedger, rawConnection } from '../support/ledger/ledger-file.ts';

const { minute, hour, day } = SUM_UNITS;
const finalization = (at: number) => ({
  ...{ upstream: 'default', at, trackedAt: at - 40_000 },
  ...{ polls: 2, detection: null },
});

it('keeps an hour by minute, a week by hour and 90 days by day', () => {
  const ledger = openLedger();
  const sums = new FinalitySums(ledger.database);
  const db = rawConnection(ledger.file);
  for (let at = 0; at <= 100 * day; at += day) sums.add([finalization(at)]);
  for (let at = 0; at <= 10 * day; at += hour) sums.add([finalization(100 * day + at)]);
  for (let at = 0; at <= 2 * hour; at += minute) sums.add([finalization(110 * day + at)]);
  const rows = db.prepare('SELECT unit, count(*) AS rows FROM finality_sums GROUP BY unit').all();
  expect(rows).toEqual([
    { unit: 'day', rows: 92 },
    { unit: 'hour', rows: 170 },
    { unit: 'minute', rows: 62 },
  ]);
});
