import type Database from 'better-sqlite3';
import { MIGRATIONS } from '../../../src/ledger/file/migrations.ts';

/** What undoes each migration, as far as its successors and the tests that use them require. */
const REVERTS: Record<number, string> = {
  3: 'DROP INDEX submissions_ended; DROP INDEX outbox_by_history; ALTER TABLE submissions DROP COLUMN ended_at',
  4: `DROP INDEX deliveries_waiting_since; ALTER TABLE deliveries DROP COLUMN replayed_at;
    CREATE INDEX deliveries_waiting_since ON deliveries (created_at) WHERE state = 'waiting'`,
  5: 'ALTER TABLE audit DROP COLUMN address',
  6: 'DROP TABLE webhook_pauses',
  7: `ALTER TABLE submissions DROP COLUMN not_found_ms; ALTER TABLE upstreams DROP COLUMN paused_since;
    ALTER TABLE upstreams DROP COLUMN paused_until`,
  8: '',
  9: `DROP TRIGGER audit_is_append_only; DROP TABLE audit_persons; ALTER TABLE audit DROP COLUMN subject; ALTER TABLE audit DROP COLUMN person_digest;
    ALTER TABLE audit DROP COLUMN hash; ALTER TABLE audit ADD COLUMN email_hash TEXT;
    ALTER TABLE audit ADD COLUMN email_masked TEXT;
    CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
      BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END`,
  10: `ALTER TABLE submissions DROP COLUMN not_found_since; ALTER TABLE submissions DROP COLUMN deadline_outage_ms_before;
    ALTER TABLE history DROP COLUMN changes; DROP TRIGGER a_final_status_stays;
    CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
      WHEN OLD.status = 'finalized' AND NEW.status <> OLD.status BEGIN SELECT RAISE(ABORT, 'final'); END`,
  11: `ALTER TABLE submissions DROP COLUMN credential; ALTER TABLE history DROP COLUMN polls;
    ALTER TABLE history DROP COLUMN lag_ms; ALTER TABLE upstreams DROP COLUMN objective_through; DROP TABLE report_rows;
    DROP TABLE objective_slices; DELETE FROM meta WHERE key = 'reports_through'`,
  12: `DROP TRIGGER metadata_added; DROP TRIGGER metadata_removed; DROP TRIGGER metadata_changed;
    DROP TABLE submission_metadata; DROP INDEX submissions_tracked; DROP INDEX submissions_ended_watched;
    DROP INDEX deliveries_created`,
  13: `DROP TABLE mutes; DROP TABLE alerts;
    CREATE TABLE alerts (
      rule TEXT NOT NULL, subject TEXT NOT NULL, summary TEXT NOT NULL, count INTEGER, since INTEGER NOT NULL,
      told_at INTEGER NOT NULL, PRIMARY KEY (rule, subject)
    ) STRICT, WITHOUT ROWID`,
  14: 'DROP TABLE submission_traces',
  15: 'DROP TABLE channel_results',
  16: `DROP TABLE credential_secrets; ALTER TABLE credentials DROP COLUMN scopes;
    ALTER TABLE credentials DROP COLUMN expires_at`,
  17: 'DROP TABLE people; DROP TABLE sessions',
  18: 'CREATE TRIGGER metadata_added AFTER INSERT ON submissions BEGIN SELECT 1; END',
};

/** Turns a ledger into one of an earlier schema. */
export function revertTo(db: Database.Database, schema: number): void {
  for (let version = MIGRATIONS.length; version > schema; version -= 1) db.exec(REVERTS[version] ?? '');
  db.pragma(`user_version = ${schema}`);
}
