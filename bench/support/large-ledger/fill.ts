import { join } from 'node:path';
import Database from 'better-sqlite3';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';

const PER_COMMIT = 100_000;
const HOUR_MS = 3_600_000;
/** Submissions are tracked evenly over this time. Their deliveries are kept longer. */
const SPAN_MS = 28 * 24 * HOUR_MS;
/** Open submissions, which are polled during the measurement. */
const OPEN = 1_000;
const PAGE_CACHE_KIB = 2_000_000;

/**
 * Creates the ledger of a server that will start in `folder`: `submissions` ended ones as the
 * server writes them, 1 % of them failed, each with three values of metadata, two or three changes,
 * one event, and one delivery with its attempt. A thousand others are open. Plain SQL in large
 * transactions, because the ledger itself would take some minutes for a million.
 */
export function fillLargeLedger(folder: string, submissions: number): void {
  const file = join(folder, 'ledger.db');
  const now = Date.now();
  createWithOpen(file, now);
  const db = new Database(file);
  db.pragma('journal_mode = MEMORY');
  db.pragma('synchronous = OFF');
  db.pragma(`cache_size = -${PAGE_CACHE_KIB}`);
  // Written row by row, triggers and indexes take most of the time.
  const later = db.prepare(LATER).all() as { type: string; name: string; sql: string }[];
  for (const { type, name } of later) db.exec(`DROP ${type} ${name}`);
  const { offset } = db.prepare('SELECT max(id) AS offset FROM submissions').get() as {
    offset: number;
  };
  const statements = STATEMENTS.map((sql) => db.prepare(sql));
  for (let from = 0; from < submissions; from += PER_COMMIT) {
    const range = {
      from: offset + from + 1,
      to: offset + Math.min(submissions, from + PER_COMMIT),
    };
    const times = { start: now - SPAN_MS, stepMs: (SPAN_MS - 2 * HOUR_MS) / submissions, offset };
    const all = { ...range, ...times };
    db.transaction(() => {
      for (const statement of statements) statement.run(all);
    })();
  }
  for (const { sql } of later) db.exec(sql);
  db.close();
}

function createWithOpen(file: string, now: number): void {
  const ledger = new Ledger({ file, now });
  ledger.upstream('default');
  const far = now + SPAN_MS;
  const limits = {
    deadlineAt: far,
    graceEndsAt: far,
    stuckAt: far,
    callbackUrl: null,
    upstream: 'default',
  };
  const requests = Array.from({ length: OPEN }, (_, index) => ({
    ...limits,
    submissionId: crypto.randomUUID() as string,
    metadata: { order: index, shop: 'berlin' },
  }));
  ledger.track(requests, now);
  ledger.close();
}

const LATER = `
  SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND (type = 'trigger' OR (type = 'index' AND tbl_name <> 'meta'))
  ORDER BY type`;

const N = '(s.id - @offset)';
const ENDED_AT = `(s.tracked_at + 40000 + ${N} * 7919 % 30000)`;
const FAILED = `${N} % 100 = 50`;
const ID = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' ||
  substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`;

/** The response of an upstream, as JSON. */
const envelope = (state: 'Pending' | 'Finalized') => {
  const hash = (digits: string) => (state === 'Finalized' ? `0x${digits.repeat(32)}` : null);
  const data = {
    amount_data: '1048576',
    block_hash: hash('ab'),
    block_number: state === 'Finalized' ? 1_234_567 : null,
    created_at: '2026-01-01T00:00:00',
    data_billed: '1048576',
    data_hash: `0x${'cd'.repeat(32)}`,
    fees: '123456789012345678',
    tx_hash: hash('ef'),
    tx_index: state === 'Finalized' ? 1 : null,
    user_id: '4a1f2f0e-7c0b-4b53-9d34-1c2a5f6b7c8d',
  };
  return `'{"id":"' || s.submission_id || '","state":"${state}","error":null,"data":${JSON.stringify(data)}}'`;
};

const OF_RANGE = 'FROM submissions s WHERE s.id BETWEEN @from AND @to';
const WAS_PENDING = `${N} % 2 = 0`;

const STATEMENTS = [
  `WITH RECURSIVE n (i) AS (SELECT @from UNION ALL SELECT i + 1 FROM n WHERE i < @to)
   INSERT INTO submissions (id, submission_id, upstream, status, watched, version, polls, polled_at, tracked_at, finalized_at,
                            deadline_at, grace_ends_at, stuck_at, outage_ms_before, metadata, ended_at, credential)
   SELECT s.i, ${ID}, 'default', iif((s.i - @offset) % 100 = 50, 'failed', 'finalized'), 0, 2 + (s.i - @offset + 1) % 2, 1 + (s.i - @offset + 1) % 2, NULL,
          CAST(@start + (s.i - @offset) * @stepMs AS INTEGER), NULL, 0, 0, 0, 0,
          json_object('order', s.i, 'shop', iif(s.i % 4, 'berlin', 'tokyo'), 'customer', 'c' || s.i % 5000), NULL, 0
   FROM n s`,
  `UPDATE submissions AS s
   SET polled_at = ${ENDED_AT}, finalized_at = iif(${FAILED}, NULL, ${ENDED_AT}), ended_at = ${ENDED_AT},
       deadline_at = tracked_at + 86400000, grace_ends_at = tracked_at + 3600000, stuck_at = tracked_at + 3600000
   WHERE id BETWEEN @from AND @to`,
  `INSERT INTO history (submission, version, at, status, previous_status, upstream_state, response, polls)
   SELECT id, v, at, status, previous, state, response, polls FROM (
     SELECT s.id, 1 AS v, s.tracked_at AS at, 'tracking' AS status, NULL AS previous, NULL AS state, NULL AS response, 0 AS polls
     ${OF_RANGE}
     UNION ALL SELECT s.id, 2, s.tracked_at + 30000, 'pending', 'tracking', 'Pending', ${envelope('Pending')}, 1
     ${OF_RANGE} AND ${WAS_PENDING}
     UNION ALL SELECT s.id, s.version, s.ended_at, s.status, iif(${WAS_PENDING}, 'pending', 'tracking'),
                      iif(${FAILED}, 'Error', 'Finalized'), ${envelope('Finalized')}, s.polls
     ${OF_RANGE})
   ORDER BY at`,
  `INSERT INTO outbox (id, type, at, upstream, submission, history_seq)
   SELECT 'evt_' || lower(hex(randomblob(16))), 'submission.' || s.status, s.ended_at, s.upstream, s.id, h.seq
   FROM submissions s CROSS JOIN history h ON h.submission = s.id AND h.version = s.version
   WHERE s.id BETWEEN @from AND @to ORDER BY s.ended_at`,
  `INSERT INTO deliveries (event, destination, state, attempts, created_at, ended_at)
   SELECT o.seq, 'webhook:wh_0123456789abcdef0123456789abcdef', 'delivered', 1, o.at, o.at + 20
   FROM outbox o WHERE o.seq > (SELECT coalesce(max(event), 0) FROM deliveries)`,
  `INSERT INTO attempts (delivery, at, duration_ms, http_status, response)
   SELECT d.id, d.created_at, 20, 204, NULL FROM deliveries d
   WHERE d.id > (SELECT coalesce(max(delivery), 0) FROM attempts)`,
  `INSERT INTO submission_metadata (key, value, submission)
   SELECT m.key, m.value, s.id ${OF_RANGE.replace('WHERE', 'JOIN json_each(s.metadata) m WHERE')} ORDER BY 1, 2, 3`,
];
