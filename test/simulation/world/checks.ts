import type Database from 'better-sqlite3';
import type { Status } from '../../../src/submissions/submission.ts';
import { LEGAL } from '../../support/ledger/domain.ts';
import type { Disk } from '../machine/disk.ts';
import type { Machine } from '../machine/machine.ts';
import type { Acknowledged } from './callers.ts';
import type { Faults } from './faults.ts';
import { DATABASE, DAY_MS, DEADLINE_MS, HOUR_MS, MINUTE_MS, RETENTION_DAYS } from './server.ts';
import type { Upstream } from './upstream.ts';

type HistoryRow = {
  seq: number;
  submissionId: string;
  version: number;
  at: number;
  status: Status;
  previous: Status | null;
  deadlineAt: number;
  changes: string | null;
  content: string;
  chain: string | null;
  events: string | null;
};
type EventRow = { seq: number; id: string; type: string; at: number; deliveries: number };
type DeliveredRow = { id: number; destination: string; event: string };
type Known = Pick<HistoryRow, 'version' | 'status' | 'content' | 'chain'> & {
  /** When its status was found changed; outside of the machine. */
  at: number;
};

type ChecksDeps = {
  machine: Machine;
  disk: Disk;
  upstream: Upstream;
  faults: Faults;
  onDefect: (text: string) => void;
  note: (occurrence: string) => void;
};

/** The longest distance of two polls, and what a burst of submissions adds to it. */
const UNPOLLED_MS = 5 * MINUTE_MS + 2 * MINUTE_MS;
/** The faults that disturb polling, and those that disturb deliveries. */
const POLLING = ['kills', 'stops', 'upstream', 'disk', 'clock'] as const;
const SENDING = ['kills', 'stops', 'receivers', 'disk', 'clock'] as const;
const OVERDUE_MS = 2 * MINUTE_MS;
/** After this time every receiver is tried again: pauses take a minute at most. */
const SENDING_MS = 3 * MINUTE_MS;
const CALM_MS = 15 * MINUTE_MS;
/** Longer than the wait for an answer after a deadline. */
const LATE_MS = 2 * MINUTE_MS;
/** Steps of the clock move times of the ledger by no more than this. */
const SKEW_MS = 3 * HOUR_MS;
const HISTORY = `
  -- New changes, each with the events about it, except those about no change of the status.
  SELECT h.seq, s.submission_id AS submissionId, h.version, h.at, h.status, h.previous_status AS previous, h.changes,
         s.deadline_at AS deadlineAt,
         json_array(h.status, h.upstream_state, h.error, h.response, h.changes) AS content, h.chain,
         (SELECT group_concat(o.type) FROM outbox o WHERE o.history_seq = h.seq AND o.type <> 'submission.stuck') AS events
  FROM history h JOIN submissions s ON s.id = h.submission WHERE h.seq > ? ORDER BY h.seq`;
const EVENTS = `
  -- New events, each with the number of its deliveries to the webhook.
  SELECT seq, id, type, at, (SELECT count(*) FROM deliveries d WHERE d.event = o.seq AND d.destination = ?) AS deliveries
  FROM outbox o WHERE seq > ? ORDER BY seq`;

const OVERDUE = `
  SELECT destination, min(next_at) FROM deliveries
  WHERE state = 'waiting' AND next_at < ? GROUP BY destination`;
const LATE = `
  -- The open submissions whose deadlines have passed.
  SELECT submission_id FROM submissions WHERE ended_at IS NULL AND deadline_at < ?`;
const DELIVERED = `
  -- Those that ended recently.
  SELECT d.id, d.destination, o.id AS event FROM deliveries d JOIN outbox o ON o.seq = d.event
  WHERE d.ended_at > ? AND d.state = 'delivered' AND d.destination NOT LIKE 'webhook:%'`;
const DEAD = "SELECT event, dead_reason FROM deliveries WHERE state = 'dead' AND destination = ?";
const OPEN = `
  SELECT (SELECT count(*) FROM submissions WHERE watched = 1)
       + (SELECT count(*) FROM deliveries WHERE state = 'waiting')`;

/**
 * Checks one ledger for what must hold at any moment, whatever has failed. Reads only what is new.
 */
export class Checks {
  /** The newest change of each submission ever seen. */
  readonly known = new Map<string, Known>();
  /** The ids of all events that the webhook must receive. */
  readonly expected = new Set<string>();
  destination = '';
  readonly #deps: ChecksDeps;
  #historySeq = 0;
  #eventSeq = 0;
  /** How many acknowledged submissions were checked. */
  #acknowledged = 0;
  /** The deliveries to callbacks and channels that have succeeded, by id. */
  readonly #delivered = new Map<number, DeliveredRow>();
  #deliveredAt = 0;

  constructor(deps: ChecksDeps) {
    this.#deps = deps;
  }

  /** `acknowledged`: in order. */
  run(acknowledged: readonly Acknowledged[]): void {
    const db = this.#deps.disk.connection(DATABASE);
    if (!db) return;
    this.#checkEvents(db);
    this.#checkHistory(db);
    this.#checkPolling(db);
    this.#checkDeliveries(db);
    for (const { id } of acknowledged.slice(this.#acknowledged))
      if (!this.known.has(id)) this.#defect(`${id} was acknowledged, and is not in the ledger`);
    this.#acknowledged = acknowledged.length;
  }

  #defect(text: string): void {
    this.#deps.onDefect(text);
  }

  #checkHistory(db: Database.Database): void {
    for (const row of prepared(db, HISTORY).all(this.#historySeq) as HistoryRow[]) {
      const { submissionId: id, status, version, previous, changes, content, chain } = row;
      if (row.seq !== this.#historySeq + 1)
        this.#defect(`change ${row.seq} follows ${this.#historySeq}`);
      this.#historySeq = row.seq;
      const before = this.known.get(id);
      if (version !== (before?.version ?? 0) + 1)
        this.#defect(`${id}: version ${version} follows ${before?.version}`);
      if (previous !== (before?.status ?? null))
        this.#defect(`${id}: ${status} follows ${before?.status}, recorded as ${previous}`);
      const hasSameContent = content === before?.content;
      if (hasSameContent && chain === before?.chain)
        this.#defect(`${id}: version ${version} repeats the one before`);
      if (before && changes === null && !isLegal(before.status, status))
        this.#defect(`${id}: ${status} after ${before.status}`);
      // A new verdict of the chain about the same content is recorded without an event.
      const own = hasSameContent ? '' : eventOf(previous, status, changes);
      const isContradicted =
        chain === 'contradicted' && !(hasSameContent && before?.chain === 'contradicted');
      const event = [own, isContradicted && 'submission.contradicted'].filter(Boolean).join();
      if ((row.events ?? '') !== event)
        this.#defect(
          `${id}: ${status} after ${previous} has the events "${row.events ?? ''}", not "${event}"`,
        );
      if (status === 'finalized' && this.#deps.upstream.finalizedAt(id) === undefined)
        this.#defect(`${id} is finalized, which is not true`);
      this.#checkEnd(row);
      const at = before?.status === status ? before.at : this.#deps.machine.now;
      this.known.set(id, { version, status, content, chain, at });
    }
  }

  /** No submission ends without a reason. */
  #checkEnd({ submissionId: id, status, previous, at, deadlineAt }: HistoryRow): void {
    if (status === previous) return;
    if (status === 'rejected') this.#defect(`${id} was rejected`);
    if (status === 'unknown' && this.#deps.upstream.has(id))
      this.#defect(`${id} is unknown, and the upstream has it`);
    if (status === 'expired') this.#deps.note('expiries');
    if ((status === 'expired' || status === 'failed') && at < deadlineAt)
      this.#defect(`${id} ended ${deadlineAt - at} ms before its deadline`);
  }

  #checkEvents(db: Database.Database): void {
    for (const row of prepared(db, EVENTS).all(this.destination, this.#eventSeq) as EventRow[]) {
      if (row.seq !== this.#eventSeq + 1)
        this.#defect(`event ${row.seq} follows ${this.#eventSeq}`);
      this.#eventSeq = row.seq;
      if (this.expected.has(row.id)) this.#defect(`two events have the id ${row.id}`);
      if (this.destination === '') continue;
      this.expected.add(row.id);
      if (row.deliveries !== 1)
        this.#defect(`${row.type} ${row.id} has ${row.deliveries} deliveries to the webhook`);
    }
    const newest =
      prepared(db, "SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").pluck().get() ?? 0;
    if (newest !== this.#eventSeq)
      this.#defect(`the newest event is ${newest}, after ${this.#eventSeq}`);
  }

  /**
   * In calm times every open submission is polled, what is final upstream is final here, and
   * nothing is open after its deadline.
   */
  #checkPolling(db: Database.Database): void {
    const { machine, faults, upstream } = this.#deps;
    const { now } = machine;
    if (faults.disturbedAt(POLLING) + CALM_MS > now) return;
    for (const id of prepared(db, LATE)
      .pluck()
      .all(machine.wall() - LATE_MS))
      this.#defect(`${id} is open after its deadline`);
    const open = prepared(
      db,
      'SELECT submission_id FROM submissions WHERE watched = 1 AND finalized_at IS NULL',
    )
      .pluck()
      .all() as string[];
    for (const id of open) {
      const polledAt = upstream.polledAt.get(id);
      const from = Math.max(polledAt ?? 0, this.known.get(id)?.at ?? now);
      if (now - from > UNPOLLED_MS)
        this.#defect(`${id} was not polled for ${Math.round((now - from) / 1_000)} s`);
      const finalAt = upstream.finalizedAt(id);
      if (finalAt !== undefined && now - Math.max(finalAt, from) > UNPOLLED_MS)
        this.#defect(`${id} is final, and not recorded as final`);
    }
  }

  /**
   * In calm times every delivery is attempted when it is due, and none is given up before its time.
   */
  #checkDeliveries(db: Database.Database): void {
    const { machine, faults } = this.#deps;
    if (machine.now > this.#deliveredAt + HOUR_MS) this.#readDelivered(db);
    const dead = prepared(db, DEAD).all(this.destination);
    if (dead.length > 0) this.#defect(`dead letters: ${JSON.stringify(dead)}`);
    // Soon, because any new delivery to a destination wakes those that were forgotten.
    if (faults.disturbedAt(SENDING) + SENDING_MS > machine.now) return;
    const overdue = prepared(db, OVERDUE).all(machine.wall() - OVERDUE_MS);
    if (overdue.length > 0) this.#defect(`not attempted: ${JSON.stringify(overdue)}`);
  }

  #readDelivered(db: Database.Database): void {
    const rows = prepared(db, DELIVERED).all(this.#deliveredAt - 2 * SKEW_MS) as DeliveredRow[];
    for (const row of rows) this.#delivered.set(row.id, row);
    this.#deliveredAt = this.#deps.machine.now;
  }

  /** Returns the number of the successful deliveries to a channel. */
  deliveredTo(channel: string): number {
    return this.#delivered
      .values()
      .reduce((sum, { destination }) => sum + (destination === channel ? 1 : 0), 0);
  }

  /** Whether every submission and every delivery has ended. */
  hasEnded(): boolean {
    const db = this.#deps.disk.connection(DATABASE);
    return db !== undefined && prepared(db, OPEN).pluck().get() === 0;
  }

  /** After everything has healed and time has passed: everything has ended, and as it should. */
  checkEnd(acknowledged: Iterable<Acknowledged>): void {
    const { disk, upstream } = this.#deps;
    const db = disk.connection(DATABASE);
    if (db) this.#checkLedger(db);
    else this.#defect('the server does not run');
    for (const { id, mayEndOpen, at } of acknowledged) {
      const finalAt = upstream.finalizedAt(id);
      const status = this.known.get(id)?.status;
      if (
        finalAt !== undefined &&
        finalAt < at + DEADLINE_MS - SKEW_MS &&
        status !== 'finalized' &&
        !mayEndOpen
      )
        this.#defect(`${id} is ${status}, although it was finalized in time`);
    }
  }

  /** After the end: every event has arrived at the webhook, and no other one. */
  checkReceived(received: { has: (id: string) => boolean; keys: () => Iterable<string> }): void {
    for (const id of this.expected)
      if (!received.has(id)) this.#defect(`the event ${id} was never delivered to the webhook`);
    for (const id of received.keys())
      if (!this.expected.has(id))
        this.#defect(`the webhook received the event ${id}, which is not in the ledger`);
  }

  /** After the end: the callbacks that count as delivered have arrived. */
  checkCallbacks(received: { has: (id: string) => boolean }): void {
    for (const { destination, event } of this.#delivered.values())
      if (destination.startsWith('callback:') && !received.has(event))
        this.#defect(`the event ${event} counts as delivered to ${destination}, and is not`);
  }

  #checkLedger(db: Database.Database): void {
    this.#readDelivered(db);
    const check = db.pragma('integrity_check', { simple: true });
    if (check !== 'ok') this.#defect(`integrity_check: ${check}`);
    const open = db.prepare(OPEN).pluck().get();
    if (open !== 0) this.#defect(`${open} submissions and deliveries never ended`);
    const oldestMs = this.#deps.machine.now - RETENTION_DAYS * DAY_MS;
    const kept = new Set(db.prepare('SELECT submission_id FROM submissions').pluck().all());
    for (const [id, { at }] of this.known) {
      if (!kept.has(id)) this.#deps.note('deletions');
      if (!kept.has(id) && at > oldestMs + SKEW_MS) this.#defect(`${id} was deleted too early`);
      // The newest submission of all stays.
      if (kept.has(id) && at < oldestMs - SKEW_MS && kept.size > 1)
        this.#defect(`${id} is kept for too long`);
    }
  }
}

const statements = new WeakMap<Database.Database, Map<string, Database.Statement>>();

/** Returns a statement that stays prepared: the checks run every few virtual minutes. */
function prepared(db: Database.Database, sql: string): Database.Statement {
  const known = statements.get(db) ?? new Map<string, Database.Statement>();
  statements.set(db, known);
  const statement = known.get(sql) ?? db.prepare(sql);
  known.set(sql, statement);
  return statement;
}

function isLegal(from: Status, to: Status): boolean {
  const isRetrack = to === 'tracking' && LEGAL[from].length === 0;
  return isRetrack || LEGAL[from].includes(to);
}

/** Returns the type of the event about a change; empty: there is none. */
function eventOf(from: Status | null, to: Status, changes: string | null): string {
  if (from === null) return '';
  if (from === to) return from === 'finalized' && changes === null ? 'submission.corrected' : '';
  if (to === 'tracking') return 'submission.retracked';
  if (to === 'pending') return from === 'failing' ? 'submission.recovered' : '';
  return `submission.${to}`;
}
