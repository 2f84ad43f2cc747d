import { callerShown } from '../access/sessions.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import {
  type Alert,
  type AlertCondition,
  type AlertFacts,
  type AlertQuery,
  type AlertRecord,
  covers,
  type LiveFacts,
  type Mute,
  type NewMute,
  resolvedSummary,
} from '../notifications/alert.ts';
import type { Outbox } from '../notifications/outbox.ts';
import type { LedgerStats } from '../operations/ledger-stats.ts';
import { AlertEventType } from '../submissions/event-types.ts';

/**
 * Maximum number of mutes that have not ended. Each check compares every firing alert with every
 * active mute.
 */
export const MAX_MUTES = 1_000;
/** The highest position that a cursor can have. */
const HIGHEST_ID = 10 ** 15 - 1;

/**
 * The times in which alerts are recorded and not sent, and maintenance windows. Throws LedgerError.
 */
export class Mutes {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /**
   * `by`: name of the credential. Returns undefined if there are MAX_MUTES already. Deletes those
   * that have ended.
   */
  add(mute: NewMute, by: string, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      this.#db.run`DELETE FROM mutes WHERE ends_at <= ${now}`;
      if ((this.#db.value<number>('SELECT count(*) FROM mutes') ?? 0) >= MAX_MUTES)
        return undefined;
      const { rule, subject, from, until, reason } = mute;
      const { lastInsertRowid } = this.#db.run`
        INSERT INTO mutes (rule, subject, starts_at, ends_at, reason, created_at, created_by)
        VALUES (${rule}, ${subject}, ${from}, ${until}, ${reason}, ${now}, ${by})`;
      return this.#db.row<Mute>(`${SELECT_MUTE} WHERE id = ?`, lastInsertRowid);
    });
  }

  /**
   * Returns the mutes that have not ended, newest first, and the position to continue `before`;
   * null at the end.
   */
  list(query: { limit: number; before?: number | undefined; now: number }): {
    mutes: Mute[];
    nextBefore: number | null;
  } {
    const { limit, before = Number.MAX_SAFE_INTEGER, now } = query;
    const rows = this.#db.iterate<Mute>(
      `${SELECT_MUTE} WHERE id < ? AND ends_at > ? ORDER BY id DESC LIMIT ?`,
      before,
      now,
      limit + 1,
    );
    const { page, hasMore } = takePage(rows, limit);
    return { mutes: page, nextBefore: hasMore ? (page.at(-1)?.id ?? null) : null };
  }

  /**
   * Ends a mute, or cancels it before its start, and returns it. Returns undefined if there is none
   * that has not ended.
   */
  delete(id: number, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      const mute = this.#db.row<Mute>(`${SELECT_MUTE} WHERE id = ? AND ends_at > ?`, id, now);
      if (mute) this.#db.run`DELETE FROM mutes WHERE id = ${id}`;
      return mute;
    });
  }

  active(now: number): Mute[] {
    return this.#db.rows(`${SELECT_MUTE} WHERE starts_at <= ? AND ends_at > ?`, now, now);
  }
}

const SELECT_MUTE = `
  SELECT id, rule, subject, starts_at AS "from", ends_at AS until, reason, created_at AS createdAt,
         ${callerShown('created_by')} AS createdBy
  FROM mutes`;

/** Resolved alerts are kept this long, at most this many. */
const KEEP_RESOLVED_MS = 30 * 86_400_000;
const MAX_RESOLVED = 10_000;

/** An alert with the end of its mute; null: it is not muted. */
export type MutedAlert = AlertRecord & { mutedUntil: number | null };
/** An alert after a request to change it. */
type ChangedAlert = { alert: MutedAlert; isChanged: boolean };

/**
 * The alerts, stored so that the beginning and the end of each alert are sent once. An alert that
 * begins during a mute is sent when the mute ends, if it still fires. Throws LedgerError.
 */
export class Alerts {
  readonly #db: LedgerDatabase;
  readonly #outbox: Outbox;
  readonly #stats: LedgerStats;
  readonly #mutes: Mutes;

  constructor(
    database: LedgerDatabase,
    deps: { outbox: Outbox; stats: LedgerStats; mutes: Mutes },
  ) {
    this.#db = database;
    this.#outbox = deps.outbox;
    this.#stats = deps.stats;
    this.#mutes = deps.mutes;
  }

  /** Returns the facts of the ledger that alert rules depend on. */
  facts({ upstreams, ...times }: AlertQuery): Omit<AlertFacts, keyof LiveFacts> {
    return {
      upstreams: this.#db.rows(UPSTREAMS, { ...times, names: JSON.stringify(upstreams) }),
      waiting: this.#db.value<number>(WAITING, times) ?? 0,
      dead: this.#db.rows(DEAD_LETTERS, times),
      disabled: this.#db.rows(
        `SELECT webhook_id AS id, description, disabled_reason AS reason, updated_at AS since
         FROM webhooks WHERE disabled_reason IN ('gone', 'failing')`,
      ),
      walBytes: this.#stats.walBytes(),
      disk: this.#stats.disk(),
      open: this.#firing().map(({ rule, subject }) => ({ rule, subject })),
    };
  }

  /**
   * Writes events for new conditions, for conditions that have ended, for alerts that were last
   * sent `remindAfterMs` ago or earlier, and for alerts whose mute has ended. An acknowledged alert
   * is sent again only at its end. The end of an alert is sent only if its beginning was sent.
   * `linkOf` returns the address of the page about an alert. Returns the alerts of the events.
   */
  reconcile(
    conditions: readonly AlertCondition[],
    options: {
      now: number;
      remindAfterMs: number;
      linkOf?: (alert: AlertCondition) => string | undefined;
    },
  ): { type: AlertEventType; alert: Alert }[] {
    const { now, remindAfterMs, linkOf = () => undefined } = options;
    return this.#db.transaction(() => {
      const firing = new Map(this.#firing().map((row) => [keyOf(row), row]));
      const mutes = this.#mutes.active(now);
      const reported: { type: AlertEventType; alert: Alert }[] = [];
      const report = (type: AlertEventType, record: AlertRecord, isSent: boolean) => {
        const { id, rule, subject, summary, count, since } = record;
        const link = linkOf(record);
        const about = {
          id,
          rule,
          subject,
          summary,
          count,
          since,
          ...(link !== undefined && { link }),
        };
        const alert: Alert = isSent ? about : { ...about, muted: true };
        this.#outbox.addAlertEvent(type, alert, now);
        reported.push({ type, alert });
      };
      for (const condition of conditions) {
        const row = firing.get(keyOf(condition));
        firing.delete(keyOf(condition));
        const isMuted = mutes.some((mute) => covers(mute, condition));
        if (!row) {
          const added = this.#add(condition, {
            since: condition.since ?? now,
            sentAt: isMuted ? null : now,
          });
          report(AlertEventType.raised, added, !isMuted);
          continue;
        }
        const { rule: _, subject: __, since: ___, ...changed } = condition;
        const record = { ...row, ...changed };
        const isDue =
          !isMuted &&
          row.acknowledgedAt === null &&
          now - (row.sentAt ?? Number.NEGATIVE_INFINITY) >= remindAfterMs;
        if (isDue)
          report(
            row.sentAt === null ? AlertEventType.raised : AlertEventType.reminder,
            record,
            true,
          );
        if (isDue || row.summary !== record.summary || row.count !== record.count)
          this.#update({ ...record, sentAt: isDue ? now : row.sentAt });
      }
      for (const row of firing.values()) {
        report(
          AlertEventType.resolved,
          { ...row, summary: resolvedSummary(row) },
          row.sentAt !== null,
        );
        this.#db.run`UPDATE alerts SET resolved_at = ${now} WHERE id = ${row.id}`;
      }
      if (firing.size > 0) this.#deleteOld(now);
      return reported;
    });
  }

  /**
   * Returns the firing, the resolved or all alerts, newest first, and the position to continue
   * `before`; null at the end. A `limit` of 0 tells whether there are any.
   */
  list(query: {
    state: 'firing' | 'resolved' | 'all';
    limit: number;
    before?: number | undefined;
    now: number;
  }): {
    alerts: MutedAlert[];
    nextBefore: number | null;
  } {
    const { state, limit, before = HIGHEST_ID, now } = query;
    const rows = this.#db.iterate<AlertRecord>(
      `${SELECT} WHERE id < ? AND ${CONDITIONS[state]} ORDER BY id DESC LIMIT ?`,
      before,
      limit + 1,
    );
    const { page, hasMore } = takePage(rows, limit);
    return {
      alerts: page.map(this.#withMute(now)),
      nextBefore: hasMore ? (page.at(-1)?.id ?? before) : null,
    };
  }

  get(id: number, now: number): MutedAlert | undefined {
    const record = this.#db.row<AlertRecord>(`${SELECT} WHERE id = ?`, id);
    return record && this.#withMute(now)(record);
  }

  /**
   * Acknowledges a firing alert: it is not sent again until its end. `by`: name of the credential.
   * An alert that is acknowledged already, or resolved, is unchanged. Returns the alert; undefined
   * if there is none with this id.
   */
  acknowledge(id: number, by: string, now: number): ChangedAlert | undefined {
    const { changes } = this.#db.run`
      UPDATE alerts SET acknowledged_at = ${now}, acknowledged_by = ${by}
      WHERE id = ${id} AND resolved_at IS NULL AND acknowledged_at IS NULL`;
    return this.#changed(id, now, changes);
  }

  /**
   * Withdraws the acknowledgement of a firing alert: reminders are sent again. Returns the alert,
   * as `acknowledge` does.
   */
  withdraw(id: number, now: number): ChangedAlert | undefined {
    const { changes } = this.#db.run`
      UPDATE alerts SET acknowledged_at = NULL, acknowledged_by = NULL
      WHERE id = ${id} AND resolved_at IS NULL AND acknowledged_at IS NOT NULL`;
    return this.#changed(id, now, changes);
  }

  #changed(id: number, now: number, changes: number): ChangedAlert | undefined {
    const alert = this.get(id, now);
    return alert && { alert, isChanged: changes > 0 };
  }

  #firing(): AlertRecord[] {
    return this.#db.rows(`${SELECT} WHERE resolved_at IS NULL ORDER BY id`);
  }

  #add(
    condition: AlertCondition,
    { since, sentAt }: { since: number; sentAt: number | null },
  ): AlertRecord {
    const { rule, subject, summary, count } = condition;
    return this.#db.row<AlertRecord>`
      INSERT INTO alerts (rule, subject, summary, count, since, sent_at)
      VALUES (${rule}, ${subject}, ${summary}, ${count}, ${since}, ${sentAt})
      RETURNING id, rule, subject, summary, count, since, sent_at AS sentAt, acknowledged_at AS acknowledgedAt,
                acknowledged_by AS acknowledgedBy, resolved_at AS resolvedAt` as AlertRecord;
  }

  #update({ id, summary, count, sentAt }: AlertRecord): void {
    this.#db
      .run`UPDATE alerts SET summary = ${summary}, count = ${count}, sent_at = ${sentAt} WHERE id = ${id}`;
  }

  #deleteOld(now: number): void {
    this.#db.run`
      DELETE FROM alerts
      WHERE resolved_at IS NOT NULL
        AND (resolved_at < ${now - KEEP_RESOLVED_MS} OR id <= (SELECT max(id) FROM alerts) - ${MAX_RESOLVED})`;
  }

  #withMute(now: number): (alert: AlertRecord) => MutedAlert {
    const mutes = this.#mutes.active(now);
    return (alert) => {
      const ends = mutes.filter((mute) => covers(mute, alert)).map(({ until }) => until);
      return {
        ...alert,
        mutedUntil: alert.resolvedAt !== null || ends.length === 0 ? null : Math.max(...ends),
      };
    };
  }
}

const SELECT = `
  SELECT id, rule, subject, summary, count, since, sent_at AS sentAt, acknowledged_at AS acknowledgedAt,
         ${callerShown('acknowledged_by')} AS acknowledgedBy, resolved_at AS resolvedAt
  FROM alerts`;

const CONDITIONS = {
  firing: 'resolved_at IS NULL',
  resolved: 'resolved_at IS NOT NULL',
  all: 'TRUE',
};

function keyOf({ rule, subject }: { rule: string; subject: string }): string {
  return `${rule} ${subject}`;
}

/**
 * Submissions that failed since @failuresSince and still have that status. Without the named index,
 * SQLite would begin with all submissions that have the status, of which a large ledger has many.
 */
const RECENT_AND_STILL = (status: 'failing' | 'failed') => `
  (SELECT count(DISTINCT o.submission)
   FROM outbox o INDEXED BY outbox_failures CROSS JOIN submissions s ON s.id = o.submission
   WHERE o.upstream = u.name AND o.at >= @failuresSince
     AND o.type IN ('submission.failing', 'submission.failed') AND s.status = '${status}')`;

/**
 * Watched submissions are only counted for an upstream with an outage, because there may be a
 * million.
 */
const UPSTREAMS = `
  SELECT u.name, u.state, u.out_since AS outSince,
         (SELECT reason FROM delays d WHERE d.upstream = u.name AND d.ended_at IS NULL
            AND d.cause IN ('upstream_down', 'key_refused') ORDER BY began_at DESC LIMIT 1) AS reason,
         iif(u.state = 'up', 0,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1)) AS watched,
         (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1 AND s.stuck = 1
            AND s.status IN ('tracking', 'pending', 'failing')) AS stuck,
         (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.is_contradicted = 1 AND s.watched = 1) AS contradicted,
         (SELECT h.chain_reason FROM submissions s JOIN history h ON h.submission = s.id AND h.version = s.version
          WHERE s.upstream = u.name AND s.is_contradicted = 1 AND s.watched = 1 ORDER BY s.id DESC LIMIT 1) AS contradiction,
         ${RECENT_AND_STILL('failing')} AS failing, ${RECENT_AND_STILL('failed')} AS failed
  FROM upstreams u WHERE u.name IN (SELECT value FROM json_each(@names)) ORDER BY u.name`;

const WAITING = `
  SELECT count(*) FROM deliveries WHERE state = 'waiting' AND coalesce(replayed_at, created_at) < @waitingBefore`;

/**
 * Recent dead letters by destination. All callbacks count as one destination. Disabled webhooks
 * have an alert of their own, and dead letters of alert events must not raise further alerts.
 */
const DEAD_LETTERS = `
  SELECT CASE WHEN d.destination LIKE 'callback:%' THEN 'webhook:callbacks' ELSE d.destination END AS receiver,
         (SELECT description FROM webhooks WHERE 'webhook:' || webhook_id = d.destination) AS description,
         count(*) AS count
  FROM deliveries d JOIN outbox o ON o.seq = d.event
  WHERE d.state = 'dead' AND d.ended_at >= @deadSince AND d.dead_reason <> 'endpoint_disabled'
    AND o.type NOT LIKE 'alert.%'
  GROUP BY receiver
  HAVING receiver NOT IN (SELECT 'webhook:' || webhook_id FROM webhooks WHERE enabled = 0)`;
