import type { Actor } from '../../domain/audit/actions.ts';
import { ERASED, type ErasureTarget, type PersonalValue, personalValueOf } from '../../domain/audit/personal-value.ts';
import { readChanges } from '../../domain/tracking/option-changes.ts';
import type { AuditTrail } from '../access/audit.ts';
import { erasureDetail } from '../access/audit-chain.ts';
import { guarded } from '../file/errors.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { withoutWaiting } from '../file/open.ts';
import { takePage } from '../file/page.ts';
import { ReportRows } from '../stats/report-rows.ts';

/** Rows that were changed or deleted, by table. */
export type ErasedRows = {
  /** Their metadata was removed, and a callback_url that contains the value. */
  submissions: number;
  /** The value was replaced in them. */
  history: number;
  events: number;
  /** The value was replaced in the summaries of alerts and the reasons of mutes. */
  alerts: number;
  /** Their responses were removed, because a receiver may have quoted the event. */
  attempts: number;
  /** The value was a group of reports; they were added to the other values. */
  report_rows: number;
  /** The hash and the masked address were deleted. */
  audit_persons: number;
  /** Their names were deleted, their credentials revoked and their sessions ended. */
  people: number;
};

export type ErasureResult = {
  erased: ErasedRows;
  /** Whether the write-ahead log, which had the earlier rows, was truncated: no reader prevented it. */
  logTruncated: boolean;
};

/** Permanent writes may leave something to copy each time. */
const COPY_WITHIN_MS = 5_000;
/** How long truncating the log is tried again if a reader prevents it. A server that prunes reads for some milliseconds at a time. */
const SHORT_READS_MS = 1_000;
/** Rows of one transaction, which takes some milliseconds. */
const ROWS_PER_STEP = 500;
const PAGES_PER_STEP = 100;
/** The value of `PRAGMA secure_delete` for FAST, which cannot be set by its number. */
const FAST = 2;
/** The value of `PRAGMA auto_vacuum` for INCREMENTAL. */
const INCREMENTAL = 2;

/** Erases what the ledger has about a person. Throws LedgerError. */
export class Erasure {
  readonly #db: LedgerDatabase;
  readonly #audit: AuditTrail;
  readonly #reports: ReportRows;
  readonly #changed: { add(submissionId: string): void } | undefined;

  /** `changed`: gets the ids of submissions whose metadata or callback_url was removed. */
  constructor(database: LedgerDatabase, audit: AuditTrail, changed?: { add(submissionId: string): void }) {
    this.#db = database;
    this.#changed = changed;
    this.#reports = new ReportRows(database);
    this.#audit = audit;
  }

  /**
   * Erases in steps of some milliseconds, each in its own transaction; an erasure that was interrupted is repeated from the start.
   * The audit has an entry for its start, and one for its end with the numbers of rows. Freed space is overwritten and returned to
   * the file system.
   */
  *run(options: { target: ErasureTarget; actor: Actor; now: () => number }): Generator<void, ErasureResult> {
    const { target, actor, now } = options;
    const value = personalValueOf(target);
    const subject = target.kind === 'email' ? 'email' : `metadata ${target.key}`;
    const entry = { action: 'data.erase', subject } as const;
    const erased: ErasedRows = {
      submissions: 0,
      history: 0,
      events: 0,
      alerts: 0,
      attempts: 0,
      report_rows: 0,
      audit_persons: 0,
      people: 0,
    };
    this.#audit.append(actor, now(), { ...entry, result: 'started' });
    const before = this.#pragma('secure_delete') === FAST ? 'FAST' : this.#pragma('secure_delete');
    this.#setPragma('secure_delete = ON');
    try {
      yield* this.#submissions(value, erased);
      erased.report_rows = yield* this.#reports.erase(value.isGroup);
      if (target.kind === 'email') {
        erased.history += yield* this.#redact('history', 'seq', ['upstream_state', 'error', 'answer'], value);
        erased.events += yield* this.#redact('outbox', 'seq', ['detail'], value);
        erased.alerts += yield* this.#redact('alerts', 'id', ['summary'], value);
        erased.alerts += yield* this.#redact('mutes', 'id', ['reason'], value);
        erased.attempts += yield* this.#redact('attempts', 'id', ['error', 'response'], value);
      }
      this.#db.transaction(() => {
        if (target.kind === 'email') {
          erased.audit_persons = this.#audit.erasePerson(target.email);
          erased.people = this.#erasePeople(value, now());
        }
        this.#audit.append(actor, now(), { ...entry, detail: erasureDetail(erased) });
      });
      yield* this.#releasePages();
    } finally {
      this.#setPragma(`secure_delete = ${before}`);
    }
    // Another thread copies most of the log first, because truncating it copies the rest on the event loop.
    const copyUntil = performance.now() + COPY_WITHIN_MS;
    while (this.#db.copyLog() === 'copying' && performance.now() < copyUntil) yield;
    const truncate = () => withoutWaiting(this.#db.connection, () => this.#db.checkpoint('TRUNCATE'));
    let logTruncated = truncate();
    const until = performance.now() + SHORT_READS_MS;
    while (!logTruncated && performance.now() < until) {
      yield;
      logTruncated = truncate();
    }
    return { erased, logTruncated };
  }

  *#submissions(value: PersonalValue, erased: ErasedRows): Generator<void> {
    type Row = { position: number; submission_id: string; metadata: string | null; callback_url: string | null };
    const sql =
      'SELECT id AS position, submission_id, metadata, callback_url FROM submissions WHERE id > ? ORDER BY id';
    yield* this.#scan<Row>(sql, ({ position: id, submission_id, metadata, callback_url: url }) => {
      const isAbout = metadata !== null && value.isInMetadata(metadata);
      const isCalled = url !== null && value.isIn(url);
      if (!isAbout && !isCalled) return;
      this.#db.run`
        UPDATE submissions SET metadata = ${isAbout ? null : metadata}, callback_url = ${isCalled ? null : url}
        WHERE id = ${id}`;
      this.#changed?.add(submission_id);
      erased.submissions += 1;
      erased.attempts += this.#eraseResponses(id);
      if (isAbout) erased.history += this.#eraseEarlier(id);
    });
    yield* this.#earlierMetadata(value, erased);
  }

  /** Deletes the people whose name or subject has the value. Their credentials stay, so that their ids are not used again. */
  #erasePeople(value: PersonalValue, now: number): number {
    type Row = { credential: number; name: string; subject: string };
    const rows = this.#db.rows<Row>`SELECT credential, name, subject FROM people`;
    const found = rows.filter(({ name, subject }) => value.isIn(name) || value.isIn(subject));
    for (const { credential } of found) {
      this.#db.run`
        DELETE FROM sessions WHERE credential_hash = (SELECT hash FROM credentials WHERE id = ${credential})`;
      this.#db.run`UPDATE credentials SET revoked_at = coalesce(revoked_at, ${now}) WHERE id = ${credential}`;
      this.#db.run`DELETE FROM people WHERE credential = ${credential}`;
    }
    return found.length;
  }

  /** Removes all metadata that a submission had earlier from its history. Returns the number of rows. */
  #eraseEarlier(submission: number): number {
    const rows = this.#db.rows<{ seq: number; changes: string }>`
      SELECT seq, changes FROM history WHERE submission = ${submission} AND changes IS NOT NULL`;
    let count = 0;
    for (const { seq, changes: text } of rows) {
      const changes = readChanges(text);
      if (!changes?.metadata) continue;
      this.#rewrite('history', 'seq', seq, { changes: JSON.stringify({ ...changes, metadata: [null, null] }) });
      count += 1;
    }
    return count;
  }

  /** Removes metadata that a client replaced later from the history. */
  *#earlierMetadata(value: PersonalValue, erased: ErasedRows): Generator<void> {
    type Row = { position: number; submission: number; changes: string | null };
    const sql = 'SELECT seq AS position, submission, changes FROM history WHERE seq > ? ORDER BY seq';
    yield* this.#scan<Row>(sql, ({ position, submission, changes: text }) => {
      const changes = text === null ? undefined : readChanges(text);
      if (!changes?.metadata) return;
      const isAbout = (metadata: unknown) => metadata !== null && value.isInMetadata(JSON.stringify(metadata));
      const [before, after] = changes.metadata;
      if (!isAbout(before) && !isAbout(after)) return;
      const metadata = [isAbout(before) ? null : before, isAbout(after) ? null : after];
      this.#rewrite('history', 'seq', position, { changes: JSON.stringify({ ...changes, metadata }) });
      erased.history += 1;
      erased.attempts += this.#eraseResponses(submission);
    });
  }

  /** Erases the responses to the events of a submission. Returns their number. */
  #eraseResponses(submission: number): number {
    const attempts = this.#db.values<number>`
      SELECT a.id FROM outbox o JOIN deliveries d ON d.event = o.seq JOIN attempts a ON a.delivery = d.id
      WHERE o.submission = ${submission} AND a.response IS NOT NULL AND a.response <> ${ERASED}`;
    for (const attempt of attempts) this.#rewrite('attempts', 'id', attempt, { response: ERASED });
    return attempts.length;
  }

  /** Replaces the value in columns of a table. Returns the number of rows. */
  *#redact(table: string, key: string, columns: readonly string[], value: PersonalValue): Generator<void, number> {
    let count = 0;
    const sql = `SELECT ${key} AS position, ${columns.join(', ')} FROM ${table} WHERE ${key} > ? ORDER BY ${key}`;
    yield* this.#scan<{ position: number } & Record<string, unknown>>(sql, (row) => {
      const changes: Record<string, string> = {};
      for (const column of columns) {
        const text = row[column];
        if (typeof text !== 'string') continue;
        const redacted = value.redact(text);
        if (redacted !== text) changes[column] = redacted;
      }
      if (Object.keys(changes).length === 0) return;
      this.#rewrite(table, key, row.position, changes);
      count += 1;
    });
    return count;
  }

  /** Visits all rows of a table in the order of `position`, in steps. */
  *#scan<Row extends { position: number }>(sql: string, visit: (row: Row) => void): Generator<void> {
    let after = Number.MIN_SAFE_INTEGER;
    const step = () => {
      const { page, hasMore } = takePage(this.#db.iterate<Row>(sql, after), ROWS_PER_STEP);
      for (const row of page) visit(row);
      after = page.at(-1)?.position ?? after;
      return hasMore;
    };
    do yield;
    while (this.#db.transaction(step));
  }

  /** Replaces a row by a copy with other values, because triggers refuse updates of most of these tables. References to it stay valid. */
  #rewrite(table: string, key: string, position: number, changes: Readonly<Record<string, string>>): void {
    const columns = this.#db.values<string>(`SELECT name FROM pragma_table_info('${table}')`);
    const copied = columns.map((column) => (column in changes ? `@${column}` : column));
    this.#db.run(
      `REPLACE INTO ${table} (${columns.join(', ')}) SELECT ${copied.join(', ')} FROM ${table} WHERE ${key} = @position`,
      { position, ...changes },
    );
  }

  /** Returns free pages to the file system. A ledger of an early version keeps them until `dawatch vacuum`. */
  *#releasePages(): Generator<void> {
    while (this.#pragma('auto_vacuum') === INCREMENTAL && this.#pragma('freelist_count') > 0) {
      yield;
      this.#setPragma(`incremental_vacuum(${PAGES_PER_STEP})`);
    }
  }

  #pragma(name: string): number {
    return Number(this.#db.connection.pragma(name, { simple: true }));
  }

  #setPragma(statement: string): void {
    guarded(this.#db.file, () => this.#db.connection.pragma(statement));
  }
}
