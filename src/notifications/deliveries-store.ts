import type { CommittedChanges, LedgerDatabase } from '../ledger/ledger-database.ts';
import { findPage, type Position } from '../ledger/page.ts';
import { storedOneOf, storedTime } from '../lib/json.ts';
import { LONGEST_WAIT_MS } from './channels/channel.ts';
import {
  CALLBACKS,
  CALLBACKS_ID,
  DEAD_REASONS,
  type DeadLetters,
  type DeadReason,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryFilter,
  type DeliveryResult,
  type DeliveryState,
  type DueDelivery,
  deliveryWalkOf,
  matches,
  parseDestination,
} from './delivery.ts';
import type { DamagedEvent, EventRecord } from './event-body.ts';
import {
  EVENT_COLUMNS,
  EVENT_JOINS,
  type EventRow,
  testedCallback,
  toEventRecord,
} from './event-log.ts';
import type { EventRoutes, Outbox } from './outbox.ts';
import type { Receivers } from './receivers-store.ts';
import type { Webhooks } from './webhooks-store.ts';

/** Longer than the retries of one event: the receiver has missed events for good. */
const DISABLE_AFTER_MS = 5 * 86_400_000;

function toDelivery(row: Delivery): Delivery {
  const name = `the delivery ${row.id}`;
  if (row.deadReason !== null) storedOneOf(DEAD_REASONS, row.deadReason, name, 'dead_reason');
  storedTime(row.createdAt, name, 'created_at');
  return row;
}

const SELECT_DELIVERY = `
  SELECT d.id, d.destination, d.state, d.dead_reason AS deadReason, d.attempts, d.next_at AS nextAt,
         d.created_at AS createdAt, d.ended_at AS endedAt, o.id AS eventId, o.type AS eventType,
         s.submission_id AS submissionId, a.http_status AS lastHttpStatus, a.error AS lastError
  FROM deliveries d JOIN outbox o ON o.seq = d.event LEFT JOIN submissions s ON s.id = o.submission
  LEFT JOIN attempts a ON a.id = (SELECT max(id) FROM attempts WHERE delivery = d.id)`;

type DeliveriesDeps = {
  routes: EventRoutes;
  outbox: Outbox;
  webhooks: Webhooks;
  receivers: Receivers;
  dead: CommittedChanges<DeadLetters>;
};

export class Deliveries {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;
  readonly #outbox: Outbox;
  readonly #webhooks: Webhooks;
  readonly #receivers: Receivers;
  readonly #dead: CommittedChanges<DeadLetters>;

  constructor(database: LedgerDatabase, deps: DeliveriesDeps) {
    this.#db = database;
    this.#routes = deps.routes;
    this.#outbox = deps.outbox;
    this.#webhooks = deps.webhooks;
    this.#receivers = deps.receivers;
    this.#dead = deps.dead;
  }

  /** Calls `listener` after the commit. Returns a function that removes it. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    return this.#outbox.onWaiting(listener);
  }

  /** Calls `listener` after each commit with dead letters, also repeatedly for one destination. */
  onDead(listener: (dead: DeadLetters) => void): void {
    this.#dead.onCommitted((notes) => {
      for (const dead of notes) listener(dead);
    });
  }

  destinations(): string[] {
    return this.#db.values("SELECT DISTINCT destination FROM deliveries WHERE state = 'waiting'");
  }

  /**
   * At least one if there is any, except for alerts whose earlier messages are in `except`. In
   * place of a delivery of an alert, its earliest waiting one is returned, even before its time.
   */
  due(destination: string, { now, limit, except }: DueQuery): DueDelivery[] {
    return this.#db.snapshot(() => {
      const ids = this.#db.values<number>`
        SELECT id FROM deliveries WHERE state = 'waiting' AND destination = (SELECT ${destination}) AND next_at <= ${now}
        ORDER BY next_at, id LIMIT ${limit + except.size} + 0`;
      const deliveries: DueDelivery[] = [];
      const ofAlerts = new Set<number>();
      let chars = 0;
      for (const id of ids) {
        if (deliveries.length === limit || chars > MAX_BATCH_CHARS) break;
        if (except.has(id)) continue;
        let row = this.#db.row<DueRow>(DUE, id);
        if (row && row.alert !== null) {
          const first = this.#db.value<number>(FIRST_OF_ALERT, row.alert, destination) ?? id;
          if (except.has(first) || ofAlerts.has(first)) continue;
          ofAlerts.add(first);
          if (first !== id) row = this.#db.row<DueRow>(DUE, first);
        }
        if (!row) continue;
        deliveries.push(toDueDelivery(row));
        chars += row.envelope?.length ?? 0;
      }
      return deliveries;
    });
  }

  /** Makes failed deliveries of a destination due, oldest first. Returns whether others remain. */
  makeFailedDue(destination: string, now: number): boolean {
    return this.#db.transaction(() => {
      const { changes } = this.#db.run(MAKE_FAILED_DUE, { destination, now });
      return changes === MAX_MADE_DUE;
    });
  }

  /** Returns the earliest next attempt that is not in `except`; null if no other delivery waits. */
  nextDueAt(destination: string, except: ReadonlySet<number>): number | null {
    const rows = this.#db.rows<{ id: number; next_at: number }>`
      SELECT id, next_at FROM deliveries WHERE state = 'waiting' AND destination = (SELECT ${destination})
      ORDER BY next_at, id LIMIT ${except.size + 1} + 0`;
    return rows.find(({ id }) => !except.has(id))?.next_at ?? null;
  }

  /**
   * Records attempt, next state and receiver. A webhook that only failed for days is disabled. A
   * failure at a former address neither delays nor disables the destination.
   */
  recordResults(results: readonly DeliveryResult[]): void {
    this.#db.transaction(() => {
      for (const result of results) this.#recordResult(result);
    });
  }

  #recordResult(result: DeliveryResult): void {
    const { deliveryId, destination, attempts, attempt, next } = result;
    const row = this.#db.row<{
      state: DeliveryState;
      destination: string;
      attempts: number;
      isReplayed: number;
      event: number;
      alert: number | null;
    }>`
      SELECT d.state, destination, attempts, waiting_since > created_at AS isReplayed, event, o.alert
      FROM deliveries d LEFT JOIN outbox o ON o.seq = d.event WHERE d.id = +${deliveryId}`;
    if (!row) return;
    this.#db.run(
      `INSERT INTO attempts (delivery, at, duration_ms, http_status, error, response)
       VALUES (@deliveryId, @at, @durationMs, @httpStatus, @error, @response)`,
      { deliveryId, ...attempt },
    );
    if (row.isReplayed === 1 || attempts >= MAX_ATTEMPTS)
      this.#db.run(DELETE_OLD_ATTEMPTS, deliveryId, MAX_ATTEMPTS);
    const endedAt = attempt.at + attempt.durationMs;
    const parsed = parseDestination(destination);
    const webhookId = parsed.kind === 'webhook' ? parsed.webhookId : undefined;
    const isUndeliverable = next.kind === 'dead' && next.reason === 'undeliverable';
    if (parsed.kind !== 'channel' && !isUndeliverable)
      this.#webhooks.attempted(webhookId ?? CALLBACKS_ID, attempt);
    if (next.kind === 'delivered') this.#end(deliveryId, 'delivered', null, endedAt);
    // The webhook was deleted or disabled during the attempt: that decision stays.
    else if (row.state !== 'waiting')
      this.#db.run`UPDATE deliveries SET attempts = attempts + 1 WHERE id = ${deliveryId}`;
    // The delivery was replayed during the attempt: it starts over.
    else if (row.attempts !== attempts) return;
    else if (this.#hasMoved(result)) {
      this.#db.run`UPDATE deliveries SET next_at = ${endedAt} WHERE id = ${deliveryId}`;
      this.#outbox.notifyWaiting(row.destination);
      return;
    } else if (next.kind === 'retry')
      this.#db.run`
        UPDATE deliveries SET attempts = attempts + 1, next_at = ${next.at} WHERE id = ${deliveryId}`;
    else {
      const reason = next.kind === 'gone' ? 'endpoint_gone' : next.reason;
      this.#end(deliveryId, 'dead', reason, endedAt);
      this.#dead.add({ destination, reason, count: 1 });
    }
    const { alert, event } = row;
    if (alert !== null) {
      const nextAt = next.kind === 'retry' ? next.at : endedAt;
      this.#db.run(AFTER_IN_ALERT, { alert, event, destination, nextAt });
    }
    // An event that cannot be sent is no failure of the receiver.
    if (isUndeliverable) return;
    // A webhook that was deleted has no URL.
    if (webhookId !== undefined && this.#webhooks.url(webhookId) !== result.address) return;
    const failingSince = this.#receivers.record(
      parsed.kind === 'callback' ? CALLBACKS : destination,
      { isDelivered: next.kind === 'delivered', error: attempt.error, at: endedAt },
    );
    if (webhookId === undefined) return;
    if (next.kind === 'gone') this.#webhooks.disable(webhookId, 'gone', endedAt);
    else if (failingSince !== null && endedAt - failingSince >= DISABLE_AFTER_MS)
      this.#webhooks.disable(webhookId, 'failing', endedAt);
  }

  #hasMoved({ deliveryId, destination, address }: DeliveryResult): boolean {
    const parsed = parseDestination(destination);
    if (parsed.kind === 'channel') return false;
    const url =
      parsed.kind === 'webhook'
        ? this.#webhooks.url(parsed.webhookId)
        : this.#db.value<string>(CALLBACK_URL, deliveryId);
    return url !== undefined && url !== address;
  }

  #end(id: number, state: DeliveryState, deadReason: DeadReason | null, endedAt: number): void {
    this.#db.run`
      UPDATE deliveries
      SET attempts = attempts + 1, state = ${state}, dead_reason = ${deadReason}, next_at = NULL, ended_at = ${endedAt}
      WHERE id = ${id}`;
  }

  /** Turns the waiting deliveries to a destination that is not configured into dead letters. */
  endUnconfigured(destination: string, now: number): void {
    this.#db.transaction(() => {
      const { changes } = this.#db.run`
        UPDATE deliveries SET state = 'dead', dead_reason = 'not_configured', next_at = NULL, ended_at = ${now}
        WHERE destination = ${destination} AND state = 'waiting'`;
      if (changes > 0) this.#dead.add({ destination, reason: 'not_configured', count: changes });
      this.#receivers.forget(destination);
    });
  }

  /**
   * Makes deliveries due that a clock ahead of time delayed: those without an attempt, and those
   * that wait longer than any delivery may.
   */
  correctTimes(now: number): void {
    this.#db.transaction(
      () =>
        this.#db.run`
        UPDATE deliveries SET next_at = ${now} WHERE state = 'waiting'
          AND next_at > iif(attempts = 0, ${now}, ${now + LONGEST_WAIT_MS})`,
    );
  }

  get(
    id: number,
  ):
    | { delivery: Delivery; event: EventRecord | DamagedEvent; attempts: DeliveryAttempt[] }
    | undefined {
    const delivery = this.#db.row<Delivery>(BY_ID, id);
    const event = this.#db.row<EventRow>(EVENT_OF, id);
    if (!delivery || !event) return undefined;
    const attempts = this.#db.rows<DeliveryAttempt>`
      SELECT at, duration_ms AS durationMs, http_status AS httpStatus, error, response
      FROM attempts WHERE delivery = ${id} ORDER BY id`;
    return { delivery: toDelivery(delivery), event: toEventRecord(event), attempts: attempts };
  }

  /** Returns a page, newest first. `after`: `next` of the previous page; null at the end. */
  list(query: DeliveryFilter & { limit: number; after?: Position | null | undefined }): {
    deliveries: Delivery[];
    next: Position | null;
  } {
    const read = (id: number) => this.#db.row<Delivery>(BY_ID, id);
    return this.#db.snapshot(() => {
      const walk = deliveryWalkOf(query, query.after);
      const { page, next } = findPage(this.#db, walk, { limit: query.limit, read });
      return { deliveries: page.map(toDelivery), next };
    });
  }

  /**
   * Failing deliveries and dead letters of a webhook by the error of their newest attempt, the most
   * frequent first; null: no attempt was made. Counts at most MAX_FAILURES of each state.
   */
  failures(destination: string): { error: string | null; failing: number; dead: number }[] {
    const parameters = destination === CALLBACKS ? [] : [{ destination }];
    return this.#db.rows(failuresSql(matches(destination)), ...parameters);
  }

  /** Sends it again, whatever its state, and counts attempts anew. Keeps earlier attempts. */
  replay(id: number, now: number): 'waiting' | 'unknown' | 'disabled' | 'discarded' {
    return this.#db.transaction(() => {
      const row = this.#db.row<{ state: DeliveryState; destination: string }>`
        SELECT state, destination FROM deliveries WHERE id = ${id}`;
      if (!row) return 'unknown';
      if (row.state === 'discarded') return 'discarded';
      if (!this.#routes.isEnabled(row.destination)) return 'disabled';
      this.#db.run(`${REPLAY} WHERE id = @id`, { id, now });
      this.#outbox.notifyWaiting(row.destination);
      return 'waiting';
    });
  }

  /**
   * Replays the dead letters, or with `error` the deliveries whose newest attempt failed with it.
   * Returns their number; undefined if the destination is unknown or disabled.
   */
  replayDead(destination: string, now: number, error?: string): number | undefined {
    return this.#db.transaction(() => {
      if (!this.#routes.isEnabled(destination)) return undefined;
      const replayed = this.#db.values<string>(
        `${REPLAY} WHERE ${error === undefined ? `state = 'dead' AND ${matches(destination)}` : failedWith(matches(destination))} RETURNING destination`,
        {
          now,
          ...(destination !== CALLBACKS && { destination }),
          ...(error !== undefined && { error }),
        },
      );
      for (const each of replayed) this.#outbox.notifyWaiting(each);
      return replayed.length;
    });
  }

  /** Deletes up to `limit` ended deliveries with their attempts. Returns their number. */
  prune(endedBefore: number, limit: number): number {
    const ids = this.#db.values<number>`
      SELECT id FROM deliveries WHERE state <> 'waiting' AND ended_at < ${endedBefore} LIMIT ${limit} + 0`;
    // Reading is cheaper than a transaction, and usually nothing is old enough.
    if (ids.length > 0)
      this.#db.transaction(() => {
        for (const id of ids) this.#db.run`DELETE FROM deliveries WHERE id = ${id}`;
      });
    return ids.length;
  }
}

/** A transaction of some 50 ms. */
const MAX_MADE_DUE = 5_000;
const MAKE_FAILED_DUE = `
  UPDATE deliveries SET next_at = @now WHERE id IN
    (SELECT id FROM deliveries INDEXED BY deliveries_failing
     WHERE destination = @destination AND state = 'waiting' AND attempts > 0 AND next_at > @now
     ORDER BY id LIMIT ${MAX_MADE_DUE})`;

/** Later messages of an alert are due with the one that they wait for, or at once after its end. */
const AFTER_IN_ALERT = `
  UPDATE deliveries SET next_at = @nextAt
  WHERE state = 'waiting' AND destination = @destination
    AND event IN (SELECT seq FROM outbox WHERE alert = @alert AND seq > @event)`;

/** No row for a test, whose event belongs to no submission. */
const CALLBACK_URL = `
  SELECT s.callback_url FROM deliveries d JOIN outbox o ON o.seq = d.event
  JOIN submissions s ON s.id = o.submission WHERE d.id = ? AND s.callback_url IS NOT NULL`;

const EVENT_OF = `
  SELECT ${EVENT_COLUMNS} FROM deliveries d JOIN outbox o ON o.seq = d.event ${EVENT_JOINS} WHERE d.id = ?`;

/** A delivery that was attempted often keeps its newest attempts. */
const MAX_ATTEMPTS = 100;
const DELETE_OLD_ATTEMPTS = `
  DELETE FROM attempts WHERE id IN
    (SELECT id FROM attempts WHERE delivery = ? ORDER BY id DESC LIMIT -1 OFFSET ?)`;

const REPLAY = `
  UPDATE deliveries AS d
  SET state = 'waiting', dead_reason = NULL, attempts = 0, next_at = @now, ended_at = NULL, waiting_since = @now`;

const NEWEST_ERROR = '(SELECT error FROM attempts WHERE delivery = d.id ORDER BY id DESC LIMIT 1)';
/** By the indexes of the two states: there may be millions that are delivered. */
const failedWith = (condition: string) => `
  d.id IN (
    SELECT id FROM deliveries INDEXED BY deliveries_waiting
    WHERE state = 'waiting' AND attempts > 0 AND ${condition}
    UNION ALL SELECT id FROM deliveries INDEXED BY deliveries_dead WHERE state = 'dead' AND ${condition})
  AND ${NEWEST_ERROR} = @error`;

/** Of each state; some 30 ms of the event loop. */
const MAX_FAILURES = 10_000;
const failuresSql = (condition: string) => `
  SELECT error, sum(state = 'waiting') AS failing, sum(state = 'dead') AS dead FROM (
    SELECT * FROM (
      SELECT state, ${NEWEST_ERROR} AS error FROM deliveries d INDEXED BY deliveries_waiting
      WHERE state = 'waiting' AND attempts > 0 AND ${condition} LIMIT ${MAX_FAILURES})
    UNION ALL SELECT * FROM (
      SELECT state, ${NEWEST_ERROR} FROM deliveries d INDEXED BY deliveries_dead
      WHERE state = 'dead' AND ${condition} LIMIT ${MAX_FAILURES}))
  GROUP BY error ORDER BY count(*) DESC`;

/** With `?` instead of `+?`, SQLite would prepare the statement anew for every bound id. */
const BY_ID = `${SELECT_DELIVERY} WHERE d.id = +?`;

type DueRow = EventRow & {
  id: number;
  attempts: number;
  callbackUrl: string | null;
};

/** Ends a batch early: a response of an upstream may be a megabyte. */
const MAX_BATCH_CHARS = 256 * 1024;

/** `limit`: the most deliveries to return. `except`: the ids of those in flight. */
export type DueQuery = { now: number; limit: number; except: ReadonlySet<number> };

function toDueDelivery(row: DueRow): DueDelivery {
  const { id, attempts } = row;
  const callbackUrl = row.callbackUrl ?? testedCallback(row);
  return { id, attempts, callbackUrl, event: toEventRecord(row) };
}

/** With `?` instead of `+?`, SQLite would prepare the statement anew for every bound id. */
const DUE = `
  SELECT d.id, d.attempts, ${EVENT_COLUMNS}
  FROM deliveries d LEFT JOIN outbox o ON o.seq = d.event ${EVENT_JOINS}
  WHERE d.id = +?`;

const FIRST_OF_ALERT = `
  SELECT d.id FROM outbox o CROSS JOIN deliveries d ON d.event = o.seq
  WHERE o.alert = ? AND d.destination = ? AND d.state = 'waiting' ORDER BY o.seq LIMIT 1`;
