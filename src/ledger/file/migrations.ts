import type Database from 'better-sqlite3';
import { FINAL_STATUSES, STATUSES } from '../../domain/submission.ts';
import { UUID_GLOB } from '../submissions/submission-rows.ts';
import { LedgerError } from './errors.ts';

const list = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');

/**
 * Each runs once, in order, in a transaction of its own; `user_version` counts those that ran. A migration that was
 * released never changes. Times are epoch milliseconds.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- What must outlive the process of each upstream: its outage, and when it was last asked.
  CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'closed',
    out_since INTEGER,
    outage_ms INTEGER NOT NULL DEFAULT 0,
    asked_until INTEGER
  ) STRICT, WITHOUT ROWID;

  -- One narrow row per submission: it is written at every poll. What the upstream said is in its newest row of history.
  CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    submission_id TEXT NOT NULL UNIQUE,
    upstream TEXT NOT NULL REFERENCES upstreams (name),
    status TEXT NOT NULL CHECK (status IN (${list(STATUSES)})),
    watched INTEGER NOT NULL CHECK (watched IN (0, 1)),
    stuck INTEGER NOT NULL DEFAULT 0 CHECK (stuck IN (0, 1)),
    version INTEGER NOT NULL,
    polls INTEGER NOT NULL DEFAULT 0,
    polled_at INTEGER,
    unanswered_since INTEGER,
    tracked_at INTEGER NOT NULL,
    finalized_at INTEGER,
    deadline_at INTEGER NOT NULL,
    grace_ends_at INTEGER NOT NULL,
    stuck_at INTEGER NOT NULL,
    outage_ms_before INTEGER NOT NULL,
    metadata TEXT
  ) STRICT;
  CREATE INDEX submissions_watched ON submissions (upstream, id) WHERE watched = 1;
  CREATE INDEX submissions_by_status ON submissions (status, id);
  CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN (${list(FINAL_STATUSES)}) AND NEW.status <> OLD.status
    BEGIN SELECT RAISE(ABORT, 'a final status has no way out'); END;

  -- One row per change, never altered. version counts from 1 per submission, seq over all.
  CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    submission INTEGER NOT NULL REFERENCES submissions (id),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL,
    previous_status TEXT,
    upstream_state TEXT,
    error TEXT,
    answer TEXT,
    UNIQUE (submission, version)
  ) STRICT;
  CREATE TRIGGER history_is_append_only BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;

  -- What must be told to others, written with the change that it tells of.
  CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT NOT NULL REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq)
  ) STRICT;
  CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;

  -- Only hashes (SHA-256) are kept.
  CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    revoked_at INTEGER
  ) STRICT;

  -- Who looked up which users. E-mail addresses only as a keyed hash (the key is in meta) and masked.
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    credential_id INTEGER REFERENCES credentials (id),
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    detail TEXT,
    email_hash TEXT,
    email_masked TEXT
  ) STRICT;
  CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  CREATE TRIGGER audit_is_never_cut BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  `,
  `
  ALTER TABLE submissions ADD COLUMN callback_url TEXT;
  CREATE INDEX submissions_stuck ON submissions (upstream) WHERE stuck = 1 AND watched = 1;

  -- Events may be about no upstream by now: what alerts and tests say is in detail.
  CREATE TABLE new_outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq),
    detail TEXT
  ) STRICT;
  INSERT INTO new_outbox SELECT seq, id, type, at, upstream, submission, history_seq, NULL FROM outbox;
  DROP TABLE outbox;
  ALTER TABLE new_outbox RENAME TO outbox;
  CREATE INDEX outbox_by_submission ON outbox (submission) WHERE submission IS NOT NULL;
  CREATE INDEX outbox_failures ON outbox (at) WHERE type IN ('submission.failing', 'submission.failed');
  CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;

  -- Whom events are sent to over HTTP. Without a url: the callbacks, whose addresses are with the submissions.
  CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT,
    types TEXT NOT NULL,
    metadata TEXT,
    description TEXT NOT NULL,
    signature TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    -- Another address, enabled, disabled: what was under way belongs to the revision before.
    revision INTEGER NOT NULL DEFAULT 0,
    disabled_reason TEXT,
    failing_since INTEGER,
    failed_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((enabled = 1) = (disabled_reason IS NULL))
  ) STRICT;

  -- Signing needs them as they are. The one that expires is being rotated away.
  CREATE TABLE webhook_secrets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    secret TEXT NOT NULL,
    public_key TEXT,
    expires_at INTEGER
  ) STRICT;
  CREATE INDEX webhook_secrets_by_webhook ON webhook_secrets (webhook);

  -- One event for one destination, written with the event.
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES outbox (seq),
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
    dead_reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL)),
    CHECK ((state = 'dead') = (dead_reason IS NOT NULL))
  ) STRICT;
  CREATE INDEX deliveries_waiting ON deliveries (destination, next_at, id) WHERE state = 'waiting';
  CREATE INDEX deliveries_waiting_since ON deliveries (created_at) WHERE state = 'waiting';
  CREATE INDEX deliveries_dead ON deliveries (ended_at, destination) WHERE state = 'dead';
  CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE state <> 'waiting';
  CREATE INDEX deliveries_by_event ON deliveries (event);
  CREATE INDEX deliveries_by_destination ON deliveries (destination, id);

  -- Every try, never altered.
  CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    delivery INTEGER NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    http_status INTEGER,
    error TEXT,
    response TEXT
  ) STRICT;
  CREATE INDEX attempts_by_delivery ON attempts (delivery, id);
  CREATE TRIGGER attempts_are_append_only BEFORE UPDATE ON attempts
    BEGIN SELECT RAISE(ABORT, 'attempts are append-only'); END;

  -- Conditions that hold and were told.
  CREATE TABLE alerts (
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    count INTEGER,
    since INTEGER NOT NULL,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (rule, subject)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- When it became final: what retention goes by.
  ALTER TABLE submissions ADD COLUMN ended_at INTEGER;
  UPDATE submissions SET ended_at =
    (SELECT min(at) FROM history h WHERE h.submission = submissions.id AND h.status = submissions.status)
    WHERE status IN (${list(FINAL_STATUSES)});
  CREATE INDEX submissions_ended ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 0;

  -- Without it, every row of history that is deleted would cost a look through all events.
  CREATE INDEX outbox_by_history ON outbox (history_seq) WHERE history_seq IS NOT NULL;
  `,
  `
  -- What is sent again has not waited since its event: it waits since it was asked for.
  ALTER TABLE deliveries ADD COLUMN replayed_at INTEGER;
  DROP INDEX deliveries_waiting_since;
  CREATE INDEX deliveries_waiting_since ON deliveries (coalesce(replayed_at, created_at)) WHERE state = 'waiting';
  `,
  `
  -- The client that asked; null in rows that were written before.
  ALTER TABLE audit ADD COLUMN address TEXT;
  `,
  `
  -- Between which events a webhook was disabled: it missed those behind the event after, through that one. NULL: it still is.
  CREATE TABLE webhook_pauses (
    id INTEGER PRIMARY KEY,
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    after INTEGER NOT NULL,
    through INTEGER
  ) STRICT;
  CREATE INDEX webhook_pauses_by_webhook ON webhook_pauses (webhook);
  -- What was missed before has dead letters.
  INSERT INTO webhook_pauses (webhook, after)
    SELECT id, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox') FROM webhooks WHERE enabled = 0;
  `,
  `
  -- For how long "not found" has been confirmed, and the pause that an upstream asked for with Retry-After.
  ALTER TABLE submissions ADD COLUMN not_found_ms INTEGER;
  ALTER TABLE upstreams ADD COLUMN paused_since INTEGER;
  ALTER TABLE upstreams ADD COLUMN paused_until INTEGER;
  `,
  `
  -- UUIDs are compared in lower case. Of one that was tracked in several spellings, one row takes the name; the others stay as they
  -- are, with their histories, and are found by their own spelling.
  UPDATE OR IGNORE submissions SET submission_id = lower(submission_id)
    WHERE submission_id <> lower(submission_id) AND submission_id GLOB '${UUID_GLOB}';
  `,
];

/** "dawa": marks the file as ours. */
export const APPLICATION_ID = 0x64617761;

/** Whether it was made by any version of dawatch. Only reads. */
export function isDawatchDatabase(db: Database.Database): boolean {
  return Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
}

/** Refuses a database of another program or a newer dawatch. Only reads. */
export function assertOwnSchema(db: Database.Database, file: string): void {
  const version = versionOf(db);
  const tables = Number(db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get());
  if (!isDawatchDatabase(db) && (tables > 0 || version !== 0))
    throw new LedgerError('foreign', `${file} is a database of another program; it was left as it is`);
  if (version > MIGRATIONS.length)
    throw new LedgerError(
      'foreign',
      `${file} was written by a newer dawatch (schema ${version}, this one knows ${MIGRATIONS.length}): upgrade dawatch`,
    );
}

/** The schema that the file has, and the one of this program. Only reads. */
export function schemaOf(db: Database.Database): { found: number; needed: number } {
  return { found: versionOf(db), needed: MIGRATIONS.length };
}

/** Whether the file has this program's schema. Only reads. */
export function isCurrent(db: Database.Database): boolean {
  return versionOf(db) === MIGRATIONS.length;
}

/** Brings the file to this program's schema. */
export function migrate(db: Database.Database): void {
  const version = versionOf(db);
  for (const [index, sql] of MIGRATIONS.entries()) {
    if (index < version) continue;
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`application_id = ${APPLICATION_ID}`);
      db.pragma(`user_version = ${index + 1}`);
    }).immediate();
  }
}

function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }));
}
