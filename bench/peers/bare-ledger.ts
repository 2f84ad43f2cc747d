import { randomUUID } from 'node:crypto';
import Database from 'better-sqlite3';
import { migrate } from '../../src/ledger/schema.ts';

export type Polled = { id: string; at: number; state: string; envelope: string };
export type Attempted = {
  id: number;
  at: number;
  durationMs: number;
  httpStatus: number;
  response: string;
};

/**
 * The ledger's tables and indexes with the same durability, and the fewest statements for the work
 * of each benchmark row: what a careful user with no other needs would write. Each write of several
 * rows is one transaction, which is on the disk when it returns.
 */
export function openBareLedger(file: string) {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.pragma('foreign_keys = ON');
  migrate(db);
  db.exec("INSERT INTO upstreams (name) VALUES ('default') ON CONFLICT DO NOTHING");
  const submission = db.prepare(`
    INSERT INTO submissions (submission_id, upstream, status, watched, version, tracked_at, deadline_at, grace_ends_at,
                             stuck_at)
    VALUES (?, 'default', 'tracking', 1, 1, ?, ?, ?, ?)`);
  const history = db.prepare(`
    INSERT INTO history (submission, version, at, status, upstream_state, response, polls)
    VALUES (?, ?, ?, 'tracking', ?, ?, 0)`);
  const find = db.prepare(`
    SELECT s.id, s.version, h.upstream_state, h.response AS envelope
    FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version WHERE s.submission_id = +?`);
  const polled = db.prepare(
    'UPDATE submissions SET polls = polls + 1, polled_at = ?, version = ? WHERE id = ?',
  );
  const read = db.prepare(`
    SELECT s.submission_id, s.upstream, s.status AS now, s.tracked_at, s.finalized_at, s.deadline_at, s.polls, s.metadata,
           h.seq, h.at, h.status, h.previous_status, h.upstream_state, h.response AS envelope, h.error
    FROM submissions s JOIN history h ON h.submission = s.id WHERE s.submission_id = +? ORDER BY h.version`);
  const event = db.prepare(
    "INSERT INTO outbox (id, type, at, detail) VALUES (?, 'webhook.test', ?, ?)",
  );
  const delivery = db.prepare(`
    INSERT INTO deliveries (event, destination, state, next_at, created_at, waiting_since)
    VALUES (?, 'webhook:bare', 'waiting', ?, ?, ?)`);
  const due = db.prepare(`
    SELECT d.id, o.id AS event, o.detail AS body FROM deliveries d JOIN outbox o ON o.seq = d.event
    WHERE d.id > +? AND d.state = 'waiting' ORDER BY d.id LIMIT 100`);
  const attempt = db.prepare(
    'INSERT INTO attempts (delivery, at, duration_ms, http_status, response) VALUES (?, ?, ?, ?, ?)',
  );
  const arrived = db.prepare(`
    UPDATE deliveries SET attempts = attempts + 1, state = 'delivered', next_at = NULL, ended_at = ? WHERE id = ?`);

  return {
    insert: db.transaction((ids: readonly string[]) => {
      const now = Date.now();
      for (const id of ids) {
        const { lastInsertRowid } = submission.run(
          id,
          now,
          now + 86_400_000,
          now + 900_000,
          now + 600_000,
        );
        history.run(lastInsertRowid, 1, now, null, null);
      }
    }).immediate,
    /** A response equal to the previous one only increases the number of polls. */
    keepPolls: db.transaction((polls: readonly Polled[]) => {
      for (const { id, at, state, envelope } of polls) {
        const row = find.get(id) as {
          id: number;
          version: number;
          upstream_state: string | null;
          envelope: string | null;
        };
        const isNew = row.upstream_state !== state || row.envelope !== envelope;
        const version = isNew ? row.version + 1 : row.version;
        if (isNew) history.run(row.id, version, at, state, envelope);
        polled.run(at, version, row.id);
      }
    }).immediate,
    /** Returns the body of dawatch's response for each id. */
    read: db.transaction((ids: readonly string[]) =>
      ids.map((id) => {
        const rows = read.all(id) as ReadRow[];
        const newest = rows.at(-1);
        return newest && { ...toBody(newest), history: rows.map(toEntry) };
      }),
    ).deferred,
    addDeliveries: db.transaction((count: number, body: string) => {
      const now = Date.now();
      for (let index = 0; index < count; index += 1)
        delivery.run(event.run(randomUUID(), now, body).lastInsertRowid, now, now, now);
    }).immediate,
    /** Returns the due deliveries after this one. */
    due: (after: number) => due.all(after) as { id: number; event: string; body: string }[],
    keepAttempts: db.transaction((attempts: readonly Attempted[]) => {
      for (const { id, at, durationMs, httpStatus, response } of attempts) {
        attempt.run(id, at, durationMs, httpStatus, response);
        arrived.run(at + durationMs, id);
      }
    }).immediate,
  };
}

/** Collects items and passes all of them to `keep` when `later` runs its callback. */
export function gathering<Item>(
  keep: (items: readonly Item[]) => void,
  later: (run: () => void) => void = setImmediate,
) {
  const items: Item[] = [];
  return (item: Item): void => {
    items.push(item);
    if (items.length === 1) later(() => keep(items.splice(0)));
  };
}

type ReadRow = Record<'submission_id' | 'upstream' | 'now' | 'status', string> &
  Record<'tracked_at' | 'deadline_at' | 'polls' | 'seq' | 'at', number> &
  Record<
    'metadata' | 'previous_status' | 'upstream_state' | 'envelope' | 'error',
    string | null
  > & {
    finalized_at: number | null;
  };

const iso = (ms: number) => new Date(ms).toISOString();
const dataOf = (envelope: string | null) => (envelope === null ? null : JSON.parse(envelope).data);

function toBody(row: ReadRow): object {
  return {
    submission_id: row.submission_id,
    upstream: row.upstream,
    status: row.now,
    upstream_state: row.upstream_state,
    data: dataOf(row.envelope),
    error: row.error,
    tracked_at: iso(row.tracked_at),
    finalized_at: row.finalized_at === null ? null : iso(row.finalized_at),
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    deadline_at: iso(row.deadline_at),
    polls: row.polls,
  };
}

function toEntry(row: ReadRow): object {
  const { seq, at, status, previous_status, upstream_state, envelope, error } = row;
  return {
    seq,
    at: iso(at),
    status,
    previous_status,
    upstream_state,
    data: dataOf(envelope),
    error,
  };
}
