/** Migration 13: acknowledgements, resolved alerts and mutes. */
export const ALERT_MIGRATION = `
  -- Alerts with their acknowledgements. Resolved ones are kept for a while. sent_at: when its beginning or a reminder was sent
  -- last; NULL: nothing was sent, because it has been muted.
  CREATE TABLE new_alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT NOT NULL,
    subject TEXT NOT NULL,
    summary TEXT NOT NULL,
    count INTEGER,
    since INTEGER NOT NULL,
    sent_at INTEGER,
    acknowledged_at INTEGER,
    acknowledged_by TEXT,
    resolved_at INTEGER,
    CHECK ((acknowledged_at IS NULL) = (acknowledged_by IS NULL))
  ) STRICT;
  INSERT INTO new_alerts (rule, subject, summary, count, since, sent_at)
    SELECT rule, subject, summary, count, since, told_at FROM alerts ORDER BY since;
  DROP TABLE alerts;
  ALTER TABLE new_alerts RENAME TO alerts;
  CREATE UNIQUE INDEX alerts_firing ON alerts (rule, subject) WHERE resolved_at IS NULL;
  CREATE INDEX alerts_resolved ON alerts (resolved_at) WHERE resolved_at IS NOT NULL;

  -- Times in which alerts are recorded and not sent. rule NULL: all alerts, a maintenance window. subject NULL: all of the rule.
  CREATE TABLE mutes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    rule TEXT,
    subject TEXT,
    starts_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    reason TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    CHECK (rule IS NOT NULL OR subject IS NULL),
    CHECK (starts_at < ends_at)
  ) STRICT;
  CREATE INDEX mutes_by_end ON mutes (ends_at);
  `;
