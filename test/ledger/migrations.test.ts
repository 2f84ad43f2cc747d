import { expect, it } from 'vitest';
import { context, observation } from '../support/domain.ts';
import { integrityOf, openLedger, rawConnection, trackRequests } from '../support/ledger-file.ts';

it('a ledger of schema 2 learns when each submission became final, from its history', () => {
  const ledger = openLedger();
  ledger.track(trackRequests(4), 1);
  ledger.record([observation('finalized', 20, 's0'), observation('error', 30, 's1')], context());
  const corrected = { ...observation('finalized', 50, 's0'), error: 'corrected' };
  ledger.record([corrected], context());
  ledger.cancel(['s2'], 40);
  ledger.close();
  const db = rawConnection(ledger.file);
  db.exec(`DROP INDEX submissions_ended; DROP INDEX outbox_by_history; ALTER TABLE submissions DROP COLUMN ended_at;
    DROP INDEX deliveries_waiting_since; ALTER TABLE deliveries DROP COLUMN replayed_at;
    CREATE INDEX deliveries_waiting_since ON deliveries (created_at) WHERE state = 'waiting'; PRAGMA user_version = 2`);
  db.close();
  openLedger({ file: ledger.file }).close();
  const rows = rawConnection(ledger.file).prepare('SELECT submission_id, ended_at FROM submissions ORDER BY id').raw();
  expect(rows.all()).toEqual([
    ['s0', 20],
    ['s1', null],
    ['s2', 40],
    ['s3', null],
  ]);
  expect(integrityOf(ledger.file)).toBe('ok');
});
