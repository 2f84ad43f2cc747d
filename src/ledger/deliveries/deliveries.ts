import type Database from 'better-sqlite3';
import {
  type DeadReason,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryResult,
  DeliveryState,
  type DueDelivery,
  parseDestination,
  type UnreadableDelivery,
  webhookDestination,
} from '../../domain/notifications/delivery.ts';
import type { EventRecord, UnreadableEvent } from '../../domain/notifications/event-body.ts';
import { CALLBACKS_ID } from '../../domain/notifications/webhook.ts';
import { canonicalId } from '../../domain/submission.ts';
import { EVENT_COLUMNS, EVENT_JOINS, type EventRow, toEventRecord } from '../events/event-rows.ts';
import type { FanOut } from '../events/fan-out.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import { takePage } from '../file/page.ts';
import type { DeadLetters } from './dead-letters.ts';
import { DELIVERY_COLUMNS, type DeliveryRow, type DueRow, toAttempt, toDelivery, toWaiting } from './delivery-rows.ts';
import type { Webhooks } from './webhooks.ts';

export type DeliveryQuery = {
  destination?: string | undefined;
  state?: DeliveryState | undefined;
  submissionId?: string | undefined;
  eventId?: string | undefined;
  limit: number;
  /** Only those with a smaller number. */
  before?: number | undefined;
};

/** What is read at once ends early once it holds this much of what the upstream said: an answer may be a megabyte. */
const MAX_PAGE_CHARS = 256 * 1024;

/** Until it is sent to the new address. */
const MOVED_RETRY_MS = 5_000;

/** Who is told what, and what came of it. What waits stays until it is delivered or given up. Throws LedgerError. */
export class Deliveries {
  readonly #transactions: LedgerDatabase;
  readonly #fanOut: FanOut;
  readonly #webhooks: Webhooks;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(transactions: LedgerDatabase, fanOut: FanOut, webhooks: Webhooks) {
    this.#transactions = transactions;
    this.#fanOut = fanOut;
    this.#webhooks = webhooks;
    this.#sql = prepareStatements(transactions.db);
  }

  /** Calls `listener` after every commit that made deliveries wait, until the function it gives back is called. */
  onWaiting(listener: (destinations: ReadonlySet<string>) => void): () => void {
    return this.#fanOut.onWaiting(listener);
  }

  /** Calls `listener` after every commit that made dead letters, with what they are. */
  onDead(listener: (dead: DeadLetters) => void): void {
    this.#fanOut.deadLetters.onCommitted(listener);
  }

  /** Everywhere something waits, with when the first of it is due. */
  destinations(): { destination: string; dueAt: number }[] {
    return this.#transactions.read(() => this.#sql.destinations.all()) as { destination: string; dueAt: number }[];
  }

  /** The first that are due there, in the order in which they are, without those in `except`; one at least if there is any. */
  due(
    destination: string,
    query: { now: number; limit: number; except: ReadonlySet<number> },
  ): (DueDelivery | UnreadableDelivery)[] {
    const { now, limit, except } = query;
    return this.#transactions.snapshot(() => {
      const ids = this.#sql.due.all({ destination, now, limit: limit + except.size }) as number[];
      const waiting: (DueDelivery | UnreadableDelivery)[] = [];
      let chars = 0;
      for (const id of ids) {
        if (except.has(id)) continue;
        const row = this.#sql.waiting.get(id) as DueRow;
        waiting.push(toWaiting(row));
        chars += row.answer?.length ?? 0;
        if (waiting.length === limit || chars > MAX_PAGE_CHARS) break;
      }
      return waiting;
    });
  }

  /** When the first one that is not in `except` is due there; null: nothing else waits. */
  nextDueAt(destination: string, except: ReadonlySet<number>): number | null {
    const rows = this.#transactions.read(() => this.#sql.nextDue.all({ destination, limit: except.size + 1 })) as {
      id: number;
      next_at: number;
    }[];
    return rows.find(({ id }) => !except.has(id))?.next_at ?? null;
  }

  /** Keeps what came of attempts, all in one transaction. `disableAfterMs`: of nothing but failures, a webhook is disabled. */
  settle(settlements: readonly DeliveryResult[], disableAfterMs: number): void {
    this.#transactions.transaction(() => {
      for (const settlement of settlements) this.#settle(settlement, disableAfterMs);
    });
  }

  /** What has waited there since before that time becomes a dead letter. */
  giveUp(destination: string, createdBefore: number, now: number): void {
    this.#transactions.transaction(() => {
      const { changes } = this.#sql.giveUp.run({ destination, createdBefore, now });
      this.#fanOut.deadLetters.add(destination, 'not_configured', changes);
    });
  }

  /** Brings times back that a clock which was ahead has written. */
  correctTimes(now: number, { first, retry }: { first: number; retry: number }): void {
    this.#transactions.transaction(() => this.#sql.correctTimes.run({ now, first: now + first, retry: now + retry }));
  }

  get(
    id: number,
  ): { delivery: Delivery; event: EventRecord | UnreadableEvent; attempts: DeliveryAttempt[] } | undefined {
    return this.#transactions.read(() => {
      const row = this.#sql.get.get(id) as (DeliveryRow & EventRow) | undefined;
      if (!row) return undefined;
      const attempts = (this.#sql.attempts.all(id) as DeliveryAttempt[]).map(toAttempt);
      return { delivery: toDelivery(row), event: toEventRecord(row), attempts };
    });
  }

  /** Newest first, with the position to go on `before`; null at the end. */
  list(query: DeliveryQuery): { deliveries: Delivery[]; nextBefore: number | null } {
    const { limit, before = Number.MAX_SAFE_INTEGER, destination, state, submissionId, eventId } = query;
    const conditions = [
      destination !== undefined && `d.${isAt(destination)}`,
      state !== undefined && 'd.state = @state',
      submissionId !== undefined &&
        'd.event IN (SELECT seq FROM outbox WHERE submission IN (SELECT id FROM submissions WHERE submission_id IN (@submissionId, @canonicalId)))',
      eventId !== undefined && 'd.event = (SELECT seq FROM outbox WHERE id = @eventId)',
    ].filter((condition) => condition !== false);
    const ids = submissionId !== undefined && { submissionId, canonicalId: canonicalId(submissionId) };
    const parameters = { before, limit: limit + 1, destination, state, ...ids, eventId };
    const { page, hasMore } = this.#transactions.read(() =>
      takePage<DeliveryRow>(this.#transactions.db.prepare(listSql(conditions)).iterate(parameters), limit),
    );
    return { deliveries: page.map(toDelivery), nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /** Sends it again from its first attempt on, whatever became of it; what was tried stays. */
  replay(id: number, now: number): 'waiting' | 'unknown' | 'disabled' | 'discarded' {
    return this.#transactions.transaction(() => {
      const row = this.#sql.get.get(id) as DeliveryRow | undefined;
      if (!row) return 'unknown';
      if (row.state === DeliveryState.discarded) return 'discarded';
      if (!this.#fanOut.isEnabled(row.destination)) return 'disabled';
      this.#sql.replay.run({ id, now });
      this.#fanOut.notifyWaiting(row.destination);
      return 'waiting';
    });
  }

  /**
   * Sends again every dead letter of that destination whose event is not older than `since`, and what it missed since then
   * while it was disabled. Undefined: nothing is sent there.
   */
  replayDead(destination: string, since: number, now: number): number | undefined {
    return this.#transactions.transaction(() => {
      if (!this.#fanOut.isEnabled(destination)) return undefined;
      const statement = destination === CALLBACKS ? this.#sql.replayDeadCallbacks : this.#sql.replayDead;
      const replayed = statement.all({ destination, since, now }) as { destination: string }[];
      for (const row of replayed) this.#fanOut.notifyWaiting(row.destination);
      return replayed.length + this.#fanOut.addMissed(destination, since, now);
    });
  }

  /** Deletes up to `limit` that ended before that time, with their attempts. Gives back how many there were. */
  prune(endedBefore: number, limit: number): number {
    return this.#transactions.unsyncedTransaction(() => this.#sql.prune.run({ endedBefore, limit }).changes);
  }

  #settle(
    { deliveryId, destination, attempts, revision, attempt, next }: DeliveryResult,
    disableAfterMs: number,
  ): void {
    const row = this.#sql.state.get(deliveryId) as Pick<DeliveryRow, 'state' | 'attempts'> | undefined;
    if (!row) return;
    this.#sql.addAttempt.run({ deliveryId, ...attempt });
    const endedAt = attempt.at + attempt.durationMs;
    const parsed = parseDestination(destination);
    const webhookId = parsed.kind === 'webhook' ? parsed.webhookId : undefined;
    // Sent elsewhere than it would be now: what that receiver did says nothing about the webhook.
    const isMoved = webhookId !== undefined && this.#webhooks.revisionOf(webhookId) !== revision;
    // Deleted or disabled while it was under way: what was decided then stays, unless it arrived.
    if (next.kind === 'delivered') this.#end(deliveryId, DeliveryState.delivered, null, endedAt);
    else if (row.state !== DeliveryState.waiting) this.#sql.countAttempt.run({ id: deliveryId });
    // Replayed meanwhile: it begins anew, whatever this attempt was.
    else if (row.attempts !== attempts) return;
    else if (next.kind === 'retry') this.#sql.retry.run({ id: deliveryId, nextAt: next.at });
    else if (isMoved && !(next.kind === 'dead' && next.reason === 'undeliverable'))
      this.#sql.retry.run({ id: deliveryId, nextAt: endedAt + MOVED_RETRY_MS });
    else {
      const reason = next.kind === 'gone' ? 'endpoint_gone' : next.reason;
      this.#end(deliveryId, DeliveryState.dead, reason, endedAt);
      this.#fanOut.deadLetters.add(destination, reason, 1);
    }
    // An event that can not be sent says nothing about who would have got it.
    const isUndeliverable = next.kind === 'dead' && next.reason === 'undeliverable';
    if (webhookId === undefined || isMoved || isUndeliverable) return;
    if (next.kind === 'delivered') this.#webhooks.succeeded(webhookId);
    else if (next.kind === 'gone') this.#webhooks.disable(webhookId, 'gone', endedAt);
    else this.#webhooks.failed(webhookId, endedAt, disableAfterMs);
  }

  #end(id: number, state: DeliveryState, deadReason: DeadReason | null, endedAt: number): void {
    this.#sql.end.run({ id, state, deadReason, endedAt });
  }
}

const CALLBACKS = webhookDestination(CALLBACKS_ID);

/** The webhook of the callbacks stands for all of their origins. */
function isAt(destination: string): string {
  return destination === CALLBACKS
    ? "destination BETWEEN 'callback:' AND 'callback:\x7f'"
    : 'destination = @destination';
}

function listSql(conditions: readonly string[]): string {
  return `
    -- Deliveries that fit, newest first.
    SELECT ${DELIVERY_COLUMNS}, o.id AS event_id, o.type, s.submission_id
    FROM deliveries d JOIN outbox o ON o.seq = d.event LEFT JOIN submissions s ON s.id = o.submission
    WHERE ${['d.id < @before', ...conditions].join(' AND ')} ORDER BY d.id DESC LIMIT @limit`;
}

const SENT_AGAIN =
  "SET state = 'waiting', dead_reason = NULL, attempts = 0, next_at = @now, ended_at = NULL, replayed_at = @now";

function replayDeadSql(destination: string): string {
  return `
    -- The dead letters of one destination, from the start.
    UPDATE deliveries ${SENT_AGAIN}
    WHERE ${isAt(destination)} AND state = 'dead' AND created_at >= @since RETURNING destination`;
}

function prepareStatements(db: Database.Database) {
  return {
    destinations: db.prepare(`
      -- Where something waits, and since when or until when.
      SELECT destination, min(next_at) AS dueAt FROM deliveries WHERE state = 'waiting' GROUP BY destination`),
    due: db
      .prepare(`
        -- What is due at one destination; from the index alone.
        SELECT id FROM deliveries WHERE state = 'waiting' AND destination = @destination AND next_at <= @now
        ORDER BY next_at, id LIMIT @limit`)
      .pluck(),
    waiting: db.prepare(`
      -- One of them, with the event that is sent. The plus keeps its plan: a join is planned anew for each id otherwise.
      SELECT d.id, d.attempts, w.revision, ${EVENT_COLUMNS}
      FROM deliveries d LEFT JOIN outbox o ON o.seq = d.event ${EVENT_JOINS}
      LEFT JOIN webhooks w ON w.webhook_id = substr(d.destination, 9) AND d.destination LIKE 'webhook:%'
      WHERE d.id = +?`),
    nextDue: db.prepare(`
      -- When something is due next there.
      SELECT id, next_at FROM deliveries WHERE state = 'waiting' AND destination = @destination
      ORDER BY next_at, id LIMIT @limit`),
    state: db.prepare('SELECT state, attempts FROM deliveries WHERE id = ?'),
    addAttempt: db.prepare(`
      -- One try.
      INSERT INTO attempts (delivery, at, duration_ms, http_status, error, response)
      VALUES (@deliveryId, @at, @durationMs, @httpStatus, @error, @response)`),
    countAttempt: db.prepare('UPDATE deliveries SET attempts = attempts + 1 WHERE id = @id'),
    retry: db.prepare('UPDATE deliveries SET attempts = attempts + 1, next_at = @nextAt WHERE id = @id'),
    end: db.prepare(`
      -- It arrived, or is given up.
      UPDATE deliveries
      SET attempts = attempts + 1, state = @state, dead_reason = @deadReason, next_at = NULL, ended_at = @endedAt
      WHERE id = @id`),
    giveUp: db.prepare(`
      -- What waits for somebody who is not there any more becomes a dead letter.
      UPDATE deliveries SET state = 'dead', dead_reason = 'not_configured', next_at = NULL, ended_at = @now
      WHERE destination = @destination AND state = 'waiting' AND created_at < @createdBefore`),
    correctTimes: db.prepare(`
      -- Times that a clock which was ahead has written.
      UPDATE deliveries SET next_at = @now
      WHERE state = 'waiting' AND next_at > iif(attempts = 0, @first, @retry)`),
    get: db.prepare(`
      -- One delivery and its event.
      SELECT ${DELIVERY_COLUMNS}, ${EVENT_COLUMNS}
      FROM deliveries d JOIN outbox o ON o.seq = d.event ${EVENT_JOINS} WHERE d.id = ?`),
    attempts: db.prepare(`
      -- Every try of one delivery, oldest first.
      SELECT at, duration_ms AS durationMs, http_status AS httpStatus, error, response
      FROM attempts WHERE delivery = ? ORDER BY id`),
    replay: db.prepare(`
      -- One delivery, from the start.
      UPDATE deliveries ${SENT_AGAIN} WHERE id = @id`),
    replayDead: db.prepare(replayDeadSql('')),
    replayDeadCallbacks: db.prepare(replayDeadSql(CALLBACKS)),
    prune: db.prepare(`
      -- Retention; attempts go with their delivery.
      DELETE FROM deliveries WHERE id IN
        (SELECT id FROM deliveries WHERE state <> 'waiting' AND ended_at < @endedBefore LIMIT @limit)`),
  };
}
