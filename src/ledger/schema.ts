import type Database from 'better-sqlite3';
import { LedgerError } from './errors.ts';

/**
 * Selects the metadata of a row that searches find (SEARCHABLE): names and values as text, the
 * first 32 at the top level, within the limits in UTF-8 bytes. Values are literal, because a
 * released schema never changes.
 */
const searchable = (row: string) => `
  SELECT key, CASE type WHEN 'text' THEN value ELSE ${row}.metadata -> fullkey END, ${row}.id
  FROM json_each(${row}.metadata)
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND 128
    AND (type <> 'text' OR octet_length(value) <= 256)
  LIMIT 32`;

const UPSTREAMS = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

  -- The state of each upstream that outlives the process: its outage, the pause that it requested with Retry-After, and until
  -- when polls may have been sent.
  CREATE TABLE upstreams (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL DEFAULT 'up',
    out_since INTEGER,
    reason TEXT,
    polling_until INTEGER,
    paused_until INTEGER
  ) STRICT, WITHOUT ROWID;
`;

const SUBMISSIONS = `
  -- One narrow row per submission, written at every poll. The response of the upstream is in the newest row of history.
  -- ended_at: time of the final status, which retention depends on. not_found_since: the first "not found" of the series.
  -- chain: that of the newest row of history. in_verification: 1 while the chain does not confirm what the upstream reported as
  -- final, until the deadline. data_hash: what the data_hash of the upstream must be. finality_at: when it became final,
  -- finality_source: how that is known.
  CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    submission_id TEXT NOT NULL UNIQUE,
    upstream TEXT NOT NULL REFERENCES upstreams (name),
    status TEXT NOT NULL CHECK (status IN ('tracking', 'pending', 'failing', 'finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled')),
    watched INTEGER NOT NULL CHECK (watched IN (0, 1)),
    stuck INTEGER NOT NULL DEFAULT 0 CHECK (stuck IN (0, 1)),
    version INTEGER NOT NULL,
    polls INTEGER NOT NULL DEFAULT 0,
    polled_at INTEGER,
    not_found_since INTEGER,
    tracked_at INTEGER NOT NULL,
    finalized_at INTEGER,
    finality_at INTEGER,
    finality_source TEXT CHECK (finality_source IN ('chain', 'estimate')),
    ended_at INTEGER,
    deadline_at INTEGER NOT NULL,
    grace_ends_at INTEGER NOT NULL,
    stuck_at INTEGER NOT NULL,
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    callback_url TEXT,
    chain TEXT CHECK (chain IN ('confirmed', 'contradicted', 'unavailable')),
    in_verification INTEGER NOT NULL DEFAULT 0 CHECK (in_verification IN (0, 1)),
    data_hash TEXT
  ) STRICT;
  CREATE INDEX submissions_watched ON submissions (upstream, id) WHERE watched = 1;
  CREATE INDEX submissions_deadline ON submissions (upstream, deadline_at) WHERE ended_at IS NULL;
  CREATE INDEX submissions_stuck ON submissions (upstream) WHERE stuck = 1 AND watched = 1;
  CREATE INDEX submissions_in_verification ON submissions (upstream, chain, id) WHERE in_verification = 1;
  CREATE INDEX submissions_by_chain ON submissions (chain, tracked_at) WHERE chain IS NOT NULL;
  CREATE INDEX submissions_by_status ON submissions (status, tracked_at);
  CREATE INDEX submissions_by_upstream ON submissions (upstream, id);
  CREATE INDEX submissions_tracked ON submissions (tracked_at);
  CREATE INDEX submissions_ended ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 0;
  CREATE INDEX submissions_ended_watched ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 1;
  -- An ended submission can be tracked again, unless it is finalized: as a new change, polled, and exempt from retention.
  CREATE TRIGGER a_final_status_stays BEFORE UPDATE OF status ON submissions
    WHEN OLD.status IN ('finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled') AND NEW.status <> OLD.status
      AND NOT (OLD.status <> 'finalized' AND NEW.status = 'tracking' AND NEW.version = OLD.version + 1
               AND NEW.watched = 1 AND NEW.ended_at IS NULL)
    BEGIN SELECT RAISE(ABORT, 'only tracking an ended submission again changes its status'); END;

  -- The metadata by value. submission-store.ts adds new submissions; the triggers maintain the rest.
  CREATE TABLE submission_metadata (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    submission INTEGER NOT NULL,
    PRIMARY KEY (key, value, submission)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER metadata_removed AFTER DELETE ON submissions WHEN OLD.metadata IS NOT NULL
    BEGIN DELETE FROM submission_metadata WHERE (key, value, submission) IN (${searchable('OLD')}); END;
  CREATE TRIGGER metadata_changed AFTER UPDATE OF metadata ON submissions WHEN NEW.metadata IS NOT OLD.metadata
    BEGIN
      DELETE FROM submission_metadata WHERE (key, value, submission) IN (${searchable('OLD')});
      INSERT OR IGNORE INTO submission_metadata ${searchable('NEW')};
    END;

  -- One row per change, never altered. version counts the changes of one submission from 1; seq is global. changes: the options
  -- that a client changed, with values before and after. polls: those of the submission until this change. chain: what the chain
  -- says about the block in the response; NULL: it was not verified. proof_block, leaf: what proves that the block has the data.
  CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    submission INTEGER NOT NULL REFERENCES submissions (id),
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('tracking', 'pending', 'failing', 'finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled')),
    previous_status TEXT,
    upstream_state TEXT,
    error TEXT,
    response TEXT CHECK (response IS NULL OR json_valid(response)),
    changes TEXT CHECK (changes IS NULL OR json_valid(changes)),
    polls INTEGER NOT NULL,
    chain TEXT CHECK (chain IN ('confirmed', 'contradicted', 'unavailable')),
    chain_reason TEXT,
    proof_block TEXT,
    leaf INTEGER,
    UNIQUE (submission, version)
  ) STRICT;
  CREATE INDEX history_by_proof_block ON history (proof_block) WHERE proof_block IS NOT NULL;
  -- Blocks with confirmed data: the encoded header, and the Keccak-256 hashes of all data in them, 32 bytes each.
  CREATE TABLE proof_blocks (
    hash TEXT PRIMARY KEY,
    header TEXT NOT NULL,
    data_root TEXT NOT NULL,
    bridge_root TEXT NOT NULL,
    leaves BLOB NOT NULL
  ) STRICT;
  CREATE TRIGGER proof_block_unused AFTER DELETE ON history WHEN OLD.proof_block IS NOT NULL
    BEGIN
      DELETE FROM proof_blocks WHERE hash = OLD.proof_block
        AND NOT EXISTS (SELECT 1 FROM history WHERE proof_block = OLD.proof_block);
    END;
  CREATE TRIGGER history_is_append_only BEFORE UPDATE ON history
    BEGIN SELECT RAISE(ABORT, 'history is append-only'); END;

  -- Events, each written with the change that it reports. Events of alerts and tests have no upstream; their content is in detail.
  -- alert: the id of the alert, which may have been deleted.
  CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    upstream TEXT REFERENCES upstreams (name),
    submission INTEGER REFERENCES submissions (id),
    history_seq INTEGER REFERENCES history (seq),
    detail TEXT CHECK (detail IS NULL OR json_valid(detail)),
    alert INTEGER
  ) STRICT;
  CREATE INDEX outbox_by_alert ON outbox (alert) WHERE alert IS NOT NULL;
  CREATE INDEX outbox_ups ON outbox (upstream, seq) WHERE type = 'upstream.up';
  CREATE INDEX outbox_by_submission ON outbox (submission) WHERE submission IS NOT NULL;
  -- Without this index, deleting a row of history would scan all events.
  CREATE INDEX outbox_by_history ON outbox (history_seq) WHERE history_seq IS NOT NULL;
  CREATE INDEX outbox_failures ON outbox (at) WHERE type IN ('submission.failing', 'submission.failed');
  CREATE TRIGGER events_never_change BEFORE UPDATE ON outbox
    BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
`;

const NOTIFICATIONS = `
  -- Webhook endpoints. Secrets are stored in clear, as signing requires; old_secret also signs until old_secret_until. The one without a url is for callbacks, whose addresses are stored with the submissions.
  CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id TEXT NOT NULL UNIQUE,
    url TEXT,
    types TEXT NOT NULL CHECK (json_valid(types)),
    metadata TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    description TEXT NOT NULL,
    secret TEXT NOT NULL,
    old_secret TEXT,
    old_secret_until INTEGER,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    disabled_reason TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    headers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(headers)),
    CHECK ((enabled = 1) = (disabled_reason IS NULL))
  ) STRICT;

  -- One event for one destination, written with the event. waiting_since: of its event, or of its newest replay.
  CREATE TABLE deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    event INTEGER NOT NULL REFERENCES outbox (seq),
    destination TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'delivered', 'dead', 'discarded')),
    dead_reason TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER,
    created_at INTEGER NOT NULL,
    waiting_since INTEGER NOT NULL,
    ended_at INTEGER,
    CHECK ((state = 'waiting') = (next_at IS NOT NULL)),
    CHECK ((state = 'waiting') = (ended_at IS NULL)),
    CHECK ((state = 'dead') = (dead_reason IS NOT NULL))
  ) STRICT;
  CREATE INDEX deliveries_waiting ON deliveries (destination, next_at, id) WHERE state = 'waiting';
  CREATE INDEX deliveries_waiting_since ON deliveries (destination, waiting_since) WHERE state = 'waiting';
  CREATE INDEX deliveries_failing ON deliveries (id) WHERE state = 'waiting' AND attempts > 0;
  CREATE INDEX deliveries_dead_by_id ON deliveries (id) WHERE state = 'dead';
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

  -- Attempts at webhooks in the last 24 hours. hour: its beginning. duration: bucket of lib/duration-histogram.ts.
  CREATE TABLE webhook_stats (
    webhook INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    hour INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    responses INTEGER NOT NULL,
    PRIMARY KEY (webhook, hour, duration)
  ) STRICT, WITHOUT ROWID;

  -- The newest results of each destination; those of all callbacks are in one row. error: of the newest failure.
  -- failing_since: the first failure after the newest success. A mail that some recipients refused is a success and a failure.
  CREATE TABLE receivers (
    destination TEXT PRIMARY KEY,
    succeeded_at INTEGER,
    failed_at INTEGER,
    error TEXT,
    failing_since INTEGER
  ) STRICT, WITHOUT ROWID;
`;

const ALERTS = `
  -- Resolved alerts are kept for a while. sent_at: when its beginning was sent; NULL: not yet, because it has been muted.
  CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    count INTEGER,
    since INTEGER NOT NULL,
    sent_at INTEGER,
    resolved_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX alerts_firing ON alerts (rule, subject) WHERE resolved_at IS NULL;
  CREATE INDEX alerts_resolved ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;

  -- Alerts that it covers are recorded and not sent until ends_at. rule NULL: all alerts. subject NULL: all of the rule.
  CREATE TABLE mutes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT,
    subject TEXT,
    ends_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    CHECK (rule IS NOT NULL OR subject IS NULL)
  ) STRICT;
  CREATE INDEX mutes_by_end ON mutes (ends_at);
`;

const ACCESS = `
  -- Only hashes (SHA-256) of secrets are stored.
  CREATE TABLE credentials (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER
  ) STRICT;

  -- The person behind a credential whose secret nobody knows.
  CREATE TABLE people (
    credential INTEGER PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (issuer, subject)
  ) STRICT;

  -- Sessions of the dashboard. hash: of the secret in the cookie. credential_hash: of the secret presented at the sign-in.
  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,
    credential_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_credential ON sessions (credential_hash, created_at);
  CREATE INDEX sessions_by_age ON sessions (created_at);

  -- Changes, and lookups of users, whose addresses are stored only masked and as a keyed hash (the key is in meta).
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    caller TEXT NOT NULL,
    credential_id INTEGER REFERENCES credentials (id),
    address TEXT,
    action TEXT NOT NULL,
    result TEXT NOT NULL,
    subject TEXT,
    detail TEXT,
    email_hash TEXT,
    email_masked TEXT
  ) STRICT;
  CREATE INDEX audit_by_email ON audit (email_hash) WHERE email_hash IS NOT NULL;
  CREATE INDEX audit_prunes ON audit (seq) WHERE action = 'audit.prune';
  CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
  -- Retention deletes entries only after an entry that records it: its subject is the number of the newest deleted entry.
  CREATE TRIGGER audit_is_pruned_on_record BEFORE DELETE ON audit
    WHEN OLD.seq > coalesce((SELECT max(CAST(subject AS INTEGER)) FROM audit WHERE action = 'audit.prune'), 0)
    BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
`;

const OVERVIEW = `
  -- What became final at an upstream in the minute, hour or day that begins at "start". The histograms of durations are JSON.
  -- lags_by_chain: number of the lags known from the chain; the others are estimates.
  CREATE TABLE finality_sums (
    unit TEXT NOT NULL CHECK (unit IN ('minute', 'hour', 'day')),
    start INTEGER NOT NULL,
    upstream TEXT NOT NULL,
    finalized INTEGER NOT NULL,
    polls INTEGER NOT NULL,
    lags_by_chain INTEGER NOT NULL,
    time_to_finality TEXT NOT NULL CHECK (json_valid(time_to_finality)),
    lag TEXT NOT NULL CHECK (json_valid(lag)),
    PRIMARY KEY (unit, start, upstream)
  ) STRICT, WITHOUT ROWID;
`;

const SCHEMA_1 = [UPSTREAMS, SUBMISSIONS, NOTIFICATIONS, ALERTS, ACCESS, OVERVIEW].join('');

/** Oldest first; `user_version` counts those that ran. A released one never changes. */
export const MIGRATIONS: readonly string[] = [SCHEMA_1];

/** "dawa" in ASCII: marks a SQLite file as a ledger. */
export const APPLICATION_ID = 0x64617761;

/** Returns whether any version of dawatch created the file. */
export function isDawatchDatabase(db: Database.Database): boolean {
  return Number(db.pragma('application_id', { simple: true })) === APPLICATION_ID;
}

/** Throws LedgerError for a database of another program or a newer dawatch. An empty one passes. */
export function assertOwnSchema(db: Database.Database, file: string): void {
  const version = versionOf(db);
  const tables = Number(db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get());
  if (!isDawatchDatabase(db) && (tables > 0 || version !== 0))
    throw new LedgerError(
      'foreign',
      `${file} is a database of another program; it was left unchanged`,
    );
  if (version > MIGRATIONS.length)
    throw new LedgerError(
      'foreign',
      `${file} was written by a newer dawatch (schema ${version}, this version supports ${MIGRATIONS.length}): upgrade dawatch`,
    );
}

export function assertLedger(db: Database.Database, file: string): void {
  assertOwnSchema(db, file);
  if (!isDawatchDatabase(db))
    throw new LedgerError('foreign', `${file} is empty: it is not a ledger`);
}

export function schemaOf(db: Database.Database): { found: number; needed: number } {
  return { found: versionOf(db), needed: MIGRATIONS.length };
}

/** Each in a transaction, so a kill resumes; a new ledger in one, for speed (row start). */
export function migrate(db: Database.Database): void {
  const run = db.transaction((from: number, to: number) => {
    for (const sql of MIGRATIONS.slice(from, to)) db.exec(sql);
    db.pragma(`application_id = ${APPLICATION_ID}`);
    db.pragma(`user_version = ${to}`);
  });
  const version = versionOf(db);
  if (version === 0) run.immediate(0, MIGRATIONS.length);
  else for (let from = version; from < MIGRATIONS.length; from += 1) run.immediate(from, from + 1);
}

function versionOf(db: Database.Database): number {
  return Number(db.pragma('user_version', { simple: true }));
}
