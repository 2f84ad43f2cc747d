import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { withReports } from '../support/ledger/report-ledger.ts';
import { startChild } from '../support/processes/child-process.ts';
import { tempFolder } from '../support/temp-folder.ts';

const COUNTING = new URL('./counting-child.ts', import.meta.url);

it('reports contain each final submission once after kill -9 at random moments', async () => {
  const file = join(tempFolder(), 'dawatch.db');
  for (let round = 0; round < 5; round++) {
    const child = startChild(COUNTING, [file, String(round)]);
    await child.message();
    await sleep(Math.random() * 120);
    await child.kill();
    const ledger = withReports(openLedger({ file }));
    const period = { from: 0, until: Number.MAX_SAFE_INTEGER, upstream: undefined };
    const rows = [...ledger.reports.rows.read({ unit: 'day', dimension: 'upstream', ...period })];
    const { finalized, cancelled } = ledger.stats.submissionsByStatus();
    expect(rows.map(({ sums }) => sums.ended)).toMatchObject([{ finalized, cancelled }]);
    ledger.close();
  }
});
