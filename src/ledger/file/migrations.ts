import { FINAL_STATUSES, STATUSES } from '../../domain/submission.ts';
import { AUDIT_CHAIN } from '../access/audit-migration.ts';
import { CREDENTIALS } from '../access/credential-migration.ts';
import { SESSIONS } from '../access/session-migration.ts';
import { ALERT_MIGRATION } from '../deliveries/alert-migration.ts';
import { CHANNEL_MIGRATION } from '../deliveries/channel-migration.ts';
import { UUID_GLOB } from '../submissions/submission-rows.ts';
import { TRACES } from '../submissions/trace-migration.ts';
import { REPORTS } from './report-migration.ts';
import { METADATA_MIGRATION, SEARCH_MIGRATION } from './search-migration.ts';

const list = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');

/** Oldest first. Each runs once, in its own transaction; `user_version` counts those that ran. A released one never changes. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- The state of each upstream that outlives the process: its outage, and until when polls may have been sent.
  CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'closed',
    out_since INTEGER,
    outage_ms INTEGER NOT NULL DEFAULT 0,
    asked_until INTEGER
  ) STRICT, WITHOUT ROWID;

  -- One narrow row per submission, written at every poll. The report of the upstream is in the newest row of history.
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

  -- One row per change, never altered. version counts the changes of one submission from 1; seq is global.
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

  -- Events, each written with the change that it reports.
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

  -- Lookups of users. E-mail addresses are stored only masked and as a keyed hash (the key is in meta).
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

  -- Events of alerts and tests have no upstream. Their content is in detail.
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

  -- Webhook endpoints. The one without a url is for callbacks, whose addresses are stored with the submissions.
  CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT,
    types TEXT NOT NULL,
    metadata TEXT,
    description TEXT NOT NULL,
    signature TEXT NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    -- Counts changes of the address and of enabled: attempts in flight belong to an earlier revision.
    revision INTEGER NOT NULL DEFAULT 0,
    disabled_reason TEXT,
    failing_since INTEGER,
    failed_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((enabled = 1) = (disabled_reason IS NULL))
  ) STRICT;

  -- Stored in clear, as signing requires. expires_at is set by a rotation.
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

  -- Attempts at deliveries, never altered.
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

  -- Open alerts that have been reported.
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
  -- The time of the final status, which retention depends on.
  ALTER TABLE submissions ADD COLUMN ended_at INTEGER;
  UPDATE submissions SET ended_at =
    (SELECT min(at) FROM history h WHERE h.submission = submissions.id AND h.status = submissions.status)
    WHERE status IN (${list(FINAL_STATUSES)});
  CREATE INDEX submissions_ended ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 0;

  -- Without this index, deleting a row of history would scan all events.
  CREATE INDEX outbox_by_history ON outbox (history_seq) WHERE history_seq IS NOT NULL;
  `,
  `
  -- A replayed delivery waits since the replay, not since its event.
  ALTER TABLE deliveries ADD COLUMN replayed_at INTEGER;
  DROP INDEX deliveries_waiting_since;
  CREATE INDEX deliveries_waiting_since ON deliveries (coalesce(replayed_at, created_at)) WHERE state = 'waiting';
  `,
  `
  -- The address of the client; null in older rows.
  ALTER TABLE audit ADD COLUMN address TEXT;
  `,
  `
  -- The events that a webhook missed while it was disabled: those with after < seq <= through. NULL: it is still disabled.
  CREATE TABLE webhook_pauses (
    id INTEGER PRIMARY KEY,
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    after INTEGER NOT NULL,
    through INTEGER
  ) STRICT;
  CREATE INDEX webhook_pauses_by_webhook ON webhook_pauses (webhook);
  -- Events that were missed earlier have dead letters.
  INSERT INTO webhook_pauses (webhook, after)
    SELECT id, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'outbox') FROM webhooks WHERE enabled = 0;
  `,
  `
  -- How long "not found" has been confirmed, and the pause that an upstream requested with Retry-After.
  ALTER TABLE submissions ADD COLUMN not_found_ms INTEGER;
  ALTER TABLE upstreams ADD COLUMN paused_since INTEGER;
  ALTER TABLE upstreams ADD COLUMN paused_until INTEGER;
  `,
  `
  -- UUIDs are compared in lower case. If one was tracked in several spellings, one row gets the canonical id; the others keep
  -- their spellings and histories, and are found by those spellings.
  UPDATE OR IGNORE submissions SET submission_id = lower(submission_id)
    WHERE submission_id <> lower(submission_id) AND submission_id GLOB '${UUID_GLOB}';
  `,
  AUDIT_CHAIN,
  `
  -- Since when the upstream has not found a submission, and the reading of the outage clock when its deadline was last changed.
  ALTER TABLE submissions ADD COLUMN not_found_since INTEGER;
  ALTER TABLE submissions ADD COLUMN deadline_outage_ms_before INTEGER;
  -- The options that a client changed, as JSON: values before and after.
  ALTER TABLE history ADD COLUMN changes TEXT;
  -- An ended submission can be tracked again, unless it is finalized: as a new change, polled, and exempt from retention.
  DROP TRIGGER a_final_status_stays;
  CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN (${list(FINAL_STATUSES)}) AND NEW.status <> OLD.status
      AND NOT (OLD.status <> 'finalized' AND NEW.status = 'tracking' AND NEW.version = OLD.version + 1
               AND NEW.watched = 1 AND NEW.ended_at IS NULL)
    BEGIN SELECT RAISE(ABORT, 'only tracking an ended submission again changes its status'); END;
  `,
  REPORTS,
  SEARCH_MIGRATION,
  ALERT_MIGRATION,
  TRACES,
  CHANNEL_MIGRATION,
  CREDENTIALS,
  SESSIONS,
  METADATA_MIGRATION,
];
