import { join } from 'node:path';
import { expect, it } from 'vitest';
import { historyOf } from '../support/ledger/domain.ts';
import {
  allSubmissions,
  integrityOf,
  isUnbroken,
  type Ledger,
  openLedger,
  outboxOf,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { seeded } from '../support/seed.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const ROUNDS = 10;
const BUSY = new URL('./busy-child.ts', import.meta.url);

type Acknowledged = { tracked?: string[]; finalized?: string[] };

/**
 * Counts acknowledged ids that are missing, reported as finalized but not stored as such, or have a
 * gap in their history.
 */
function lost(ledger: Ledger, acknowledged: readonly Acknowledged[]): string[] {
  const finalized = new Set(acknowledged.flatMap((batch) => batch.finalized ?? []));
  return acknowledged
    .flatMap((batch) => batch.tracked ?? [])
    .filter((id) => {
      const submission = ledger.submissions.get(id);
      const history = historyOf(ledger, id);
      const isWhole = submission?.version === history.length && isUnbroken(history);
      return !isWhole || (finalized.has(id) && submission.status !== 'finalized');
    });
}

it('acknowledged writes survive kill -9 at random moments, ten times on the same file', async () => {
  const { between } = seeded('crash');
  const file = join(tempFolder(), 'dawatch.db');
  const acknowledged: Acknowledged[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const child = startChild(BUSY, [file, String(between(1, 40)), String(round)]);
    await child.message();
    const batches = between(1, 20);
    await until(() => child.messages.length >= batches);
    await child.kill();
    acknowledged.push(...(child.messages as Acknowledged[]));
    const ledger = openLedger({ file });
    expect(lost(ledger, child.messages as Acknowledged[])).toEqual([]);
    ledger.close();
  }
  const ledger = openLedger({ file });
  expect(lost(ledger, acknowledged)).toEqual([]);
  expect(integrityOf(file)).toBe('ok');
  const all = allSubmissions(ledger);
  expect(all.length).toBeGreaterThan(ROUNDS);
  const finalized = all
    .filter(({ status }) => status === 'finalized')
    .map(({ submissionId }) => submissionId);
  const reported = outboxOf(file).map(({ submission_id }) => submission_id);
  expect(reported.sort(), 'one event for each that is final').toEqual(finalized.sort());
});
