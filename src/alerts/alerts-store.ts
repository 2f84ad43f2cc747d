import { callerShown } from '../access/sessions.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { takePage } from '../ledger/page.ts';
import type { Alert, AlertRule } from '../notifications/event-body.ts';
import type { Outbox } from '../notifications/outbox.ts';
import type { Receivers } from '../notifications/receivers-store.ts';
import { AlertEventType } from '../submissions/event-types.ts';
import type { LedgerStats } from '../submissions/ledger-stats.ts';
import { oddStateOf } from '../submissions/upstream.ts';
import {
  type AlertCondition,
  type AlertFacts,
  FAILURES_WINDOW_MS,
  type LiveFacts,
  resolvedSummary,
} from './rules.ts';

/** Alerts that it covers are recorded and not sent until its end. */
export type NewMute = {
  rule: AlertRule | null;
  subject: string | null;
  until: number;
  reason: string;
};
export type Mute = NewMute & { id: number; createdAt: number; createdBy: string };

/** Mutes that have not ended. Each check compares every firing alert with all of them. */
export const MAX_MUTES = 100;

type AlertRecord = Omit<AlertCondition, 'since'> & {
  /** Identifies this occurrence: a condition that holds again later gets another id. */
  id: number;
  since: number;
  /** null: its beginning was not sent, because the alert was muted. */
  sentAt: number | null;
  resolvedAt: number | null;
};
/** `mutedUntil`: null: it is not muted. */
export type MutedAlert = AlertRecord & { mutedUntil: number | null };

/** Resolved alerts are kept this long, at most this many. */
const KEEP_RESOLVED_MS = 30 * 86_400_000;
const MAX_RESOLVED = 10_000;
const HIGHEST_ID = 10 ** 15 - 1;
/** Dead letters older than this raise no alert. */
const DEAD_WINDOW_MS = 86_400_000;

/** Stores alerts and mutes. An alert that begins in a mute is sent at its end if it still fires. */
export class Alerts {
  readonly #db: LedgerDatabase;
  readonly #outbox: Outbox;
  readonly #receivers: Receivers;
  readonly #stats: LedgerStats;

  constructor(
    database: LedgerDatabase,
    deps: { outbox: Outbox; receivers: Receivers; stats: LedgerStats },
  ) {
    this.#db = database;
    this.#outbox = deps.outbox;
    this.#receivers = deps.receivers;
    this.#stats = deps.stats;
  }

  /** Returns the facts of the ledger that alert rules depend on. `upstreams`: those configured. */
  facts(upstreams: readonly string[], now: number): Omit<AlertFacts, keyof LiveFacts> {
    const failures = { failuresSince: now - FAILURES_WINDOW_MS, names: JSON.stringify(upstreams) };
    return {
      upstreams: this.#db
        .rows<Omit<AlertFacts['upstreams'][number], 'oddState'>>(UPSTREAMS, failures)
        .map((one) => ({
          ...one,
          oddState: one.stuck === 0 ? null : oddStateOf(this.#db, one.name),
        })),
      receivers: this.#receivers.list(now),
      dead: this.#db.rows(DEAD_LETTERS, { deadSince: now - DEAD_WINDOW_MS }),
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
   * Writes events for conditions that began or ended, and for alerts whose mute ended. The end of
   * an alert is sent only if its beginning was. `linkOf` returns the address of the page about an
   * alert. Returns the events with their alerts.
   */
  reconcile(
    conditions: readonly AlertCondition[],
    now: number,
    linkOf: (alert: AlertCondition) => string | undefined = () => undefined,
  ): { type: AlertEventType; alert: Alert }[] {
    return this.#db.transaction(() => {
      const firing = new Map(this.#firing().map((row) => [keyOf(row), row]));
      const mutes = this.mutes(now);
      const reported: { type: AlertEventType; alert: Alert }[] = [];
      const report = (type: AlertEventType, record: AlertRecord, isSent: boolean) => {
        const { sentAt: _, resolvedAt: __, ...about } = record;
        const link = linkOf(record);
        const alert: Alert = {
          ...about,
          ...(link !== undefined && { link }),
          ...(!isSent && { muted: true }),
        };
        this.#outbox.addAlertEvent(type, alert, now);
        reported.push({ type, alert });
      };
      for (const condition of conditions) {
        const row = firing.get(keyOf(condition));
        firing.delete(keyOf(condition));
        const isMuted = mutes.some((mute) => covers(mute, condition));
        if (!row) {
          const sentAt = isMuted ? null : now;
          report(AlertEventType.raised, this.#add(condition, sentAt, now), !isMuted);
          continue;
        }
        const { summary, count } = condition;
        const record = { ...row, summary, count };
        const isDue = !isMuted && row.sentAt === null;
        if (isDue) report(AlertEventType.raised, record, true);
        if (isDue || row.summary !== summary || row.count !== count)
          this.#db.run`
            UPDATE alerts SET summary = ${summary}, count = ${count}, sent_at = ${isDue ? now : row.sentAt}
            WHERE id = ${row.id}`;
      }
      for (const row of firing.values()) {
        const record = { ...row, summary: resolvedSummary(row) };
        report(AlertEventType.resolved, record, row.sentAt !== null);
        this.#db.run`UPDATE alerts SET resolved_at = ${now} WHERE id = ${row.id}`;
      }
      if (firing.size > 0) this.#deleteOld(now);
      return reported;
    });
  }

  /**
   * Newest first; `before` continues, null at the end. A `limit` of 0 tells whether there are any.
   */
  list(query: {
    state: 'firing' | 'resolved' | 'all';
    limit: number;
    before?: number | undefined;
    now: number;
  }): { alerts: MutedAlert[]; nextBefore: number | null } {
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

  /**
   * `by`: name of the credential. Returns undefined at MAX_MUTES. Deletes those that have ended.
   */
  addMute(mute: NewMute, by: string, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      this.#db.run`DELETE FROM mutes WHERE ends_at <= ${now}`;
      if (this.mutes(now).length >= MAX_MUTES) return undefined;
      const { rule, subject, until, reason } = mute;
      const { lastInsertRowid } = this.#db.run`
        INSERT INTO mutes (rule, subject, ends_at, reason, created_at, created_by)
        VALUES (${rule}, ${subject}, ${until}, ${reason}, ${now}, ${by})`;
      return this.#db.row<Mute>(`${SELECT_MUTE} WHERE id = ?`, lastInsertRowid);
    });
  }

  deleteMute(id: number, now: number): Mute | undefined {
    return this.#db.transaction(() => {
      const mute = this.mutes(now).find((one) => one.id === id);
      if (mute) this.#db.run`DELETE FROM mutes WHERE id = ${id}`;
      return mute;
    });
  }

  mutes(now: number): Mute[] {
    return this.#db.rows(`${SELECT_MUTE} WHERE ends_at > ? ORDER BY id DESC`, now);
  }

  #firing(): AlertRecord[] {
    return this.#db.rows(`${SELECT} WHERE resolved_at IS NULL ORDER BY id`);
  }

  #add(condition: AlertCondition, sentAt: number | null, now: number): AlertRecord {
    const { rule, subject, summary, count, since = null } = condition;
    const { lastInsertRowid } = this.#db.run`
      INSERT INTO alerts (rule, subject, summary, count, since, sent_at)
      VALUES (${rule}, ${subject}, ${summary}, ${count}, ${since ?? now}, ${sentAt})`;
    return this.#db.row<AlertRecord>(`${SELECT} WHERE id = ?`, lastInsertRowid) as AlertRecord;
  }

  #deleteOld(now: number): void {
    this.#db.run`
      DELETE FROM alerts
      WHERE resolved_at IS NOT NULL
        AND (resolved_at < ${now - KEEP_RESOLVED_MS} OR id <= (SELECT max(id) FROM alerts) - ${MAX_RESOLVED})`;
  }

  #withMute(now: number): (alert: AlertRecord) => MutedAlert {
    const mutes = this.mutes(now);
    return (alert) => {
      const ends = mutes.filter((mute) => covers(mute, alert)).map(({ until }) => until);
      const mutedUntil = alert.resolvedAt !== null || ends.length === 0 ? null : Math.max(...ends);
      return { ...alert, mutedUntil };
    };
  }
}

function covers(mute: Mute, alert: { rule: AlertRule; subject: string }): boolean {
  if (mute.rule !== null && mute.rule !== alert.rule) return false;
  return mute.subject === null || mute.subject === alert.subject;
}

function keyOf({ rule, subject }: { rule: string; subject: string }): string {
  return `${rule} ${subject}`;
}

const SELECT_MUTE = `
  SELECT id, rule, subject, ends_at AS until, reason, created_at AS createdAt,
         ${callerShown('created_by')} AS createdBy
  FROM mutes`;

const SELECT = `
  SELECT id, rule, subject, summary, count, since, sent_at AS sentAt, resolved_at AS resolvedAt
  FROM alerts`;

const CONDITIONS = {
  firing: 'resolved_at IS NULL',
  resolved: 'resolved_at IS NOT NULL',
  all: 'TRUE',
};

/** Without the named index, SQLite would read all submissions that have the status. */
const RECENT_AND_STILL = (status: 'failing' | 'failed') => `
  (SELECT count(DISTINCT o.submission)
   FROM outbox o INDEXED BY outbox_failures CROSS JOIN submissions s ON s.id = o.submission
   WHERE o.upstream = u.name AND o.at >= @failuresSince
     AND o.type IN ('submission.failing', 'submission.failed') AND s.status = '${status}')`;

/** Watched submissions are counted only during an outage, because there may be a million. */
const UPSTREAMS = `
  SELECT u.name, u.state, u.out_since AS outSince, u.reason,
         iif(u.state = 'up', 0,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1)) AS watched,
         (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1 AND s.stuck = 1
            AND s.status IN ('tracking', 'pending', 'failing')) AS stuck,
         (SELECT count(*) FROM submissions s
          WHERE s.upstream = u.name AND s.in_verification = 1 AND s.chain = 'contradicted') AS contradicted,
         ${RECENT_AND_STILL('failing')} AS failing, ${RECENT_AND_STILL('failed')} AS failed
  FROM upstreams u WHERE u.name IN (SELECT value FROM json_each(@names)) ORDER BY u.name`;

/** All callbacks are one destination. Disabled webhooks and alert events raise no alert here. */
const DEAD_LETTERS = `
  SELECT CASE WHEN d.destination LIKE 'callback:%' THEN 'webhook:callbacks' ELSE d.destination END AS receiver,
         (SELECT description FROM webhooks WHERE 'webhook:' || webhook_id = d.destination) AS description,
         count(*) AS count
  FROM deliveries d JOIN outbox o ON o.seq = d.event
  WHERE d.state = 'dead' AND d.ended_at >= @deadSince AND d.dead_reason <> 'endpoint_disabled'
    AND o.type NOT LIKE 'alert.%'
  GROUP BY receiver
  HAVING receiver NOT IN (SELECT 'webhook:' || webhook_id FROM webhooks WHERE enabled = 0)`;
