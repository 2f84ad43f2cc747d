import { join } from 'node:path';
import { expect, it } from 'vitest';
import { historyOf } from '../support/ledger/domain.ts';
import {
  allSubmissions,
  integrityOf,
  isUnbroken,
  type Ledger,
  openLedger,
} from '../support/ledger/ledger-file.ts';
import { startChild } from '../support/processes/child-process.ts';
import { seeded } from '../support/seed.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { until } from '../support/until.ts';

const ROUNDS = 2;
const PRUNING = new URL('./pruning-child.ts', import.meta.url);

it('kill -9 during pruning leaves every open submission, each other one complete or deleted, and the audit pruned', async () => {
  const { between } = seeded('pruning');
  const file = join(tempFolder(), 'dawatch.db');
  const open: unknown[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const child = startChild(PRUNING, [file, String(round)]);
    await child.message();
    const turns = between(3, 8);
    await until(() => child.messages.length >= turns);
    await child.kill();
    open.push(...child.messages);
  }
  const ledger = openLedger({ file });
  for (const id of open)
    expect(ledger.submissions.get(String(id))?.status, String(id)).toBe('tracking');
  const all = allSubmissions(ledger);
  for (const { submissionId, version } of all) {
    const history = historyOf(ledger, submissionId);
    expect([history.length, isUnbroken(history)]).toEqual([version, true]);
  }
  expect(ledger.events.missingThrough(), 'something was pruned').toBeGreaterThan(0);
  const finalized = all.filter(({ status }) => status === 'finalized');
  expect(eventsOf(ledger)).toHaveLength(finalized.length);
  expect(integrityOf(file)).toBe('ok');
  const [oldest] = ledger.audit.after(0, 1);
  expect(oldest?.seq, 'entries were pruned').toBeGreaterThan(1);
});

/** All events, in the order of the feed. The ledger limits what it returns at once. */
function eventsOf(ledger: Ledger): { seq: number }[] {
  const all: { seq: number }[] = [];
  for (
    let page = ledger.events.after(0, 1_000);
    page.length > 0;
    page = ledger.events.after(all.at(-1)?.seq ?? 0, 1_000)
  )
    all.push(...page);
  return all;
}
