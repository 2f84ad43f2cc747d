import {
  type Alert,
  type AlertCondition,
  type AlertFacts,
  type AlertQuery,
  type AlertRule,
  resolvedSummary,
} from '../../domain/notifications/alert.ts';
import { AlertEventType } from '../../domain/notifications/events.ts';
import type { Outbox } from '../events/outbox.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';
import type { LedgerStats } from '../stats/ledger-stats.ts';
import type { ObjectiveSlices } from '../stats/objective-slices.ts';

type AlertRow = {
  rule: AlertRule;
  subject: string;
  summary: string;
  count: number | null;
  since: number;
  notifiedAt: number;
};

/** The open alerts, stored so that each one is reported once when it is raised and once when it is resolved. Throws LedgerError. */
export class Alerts {
  readonly #db: LedgerDatabase;
  readonly #outbox: Outbox;
  readonly #stats: LedgerStats;
  readonly #objectives: ObjectiveSlices;

  constructor(database: LedgerDatabase, outbox: Outbox, stats: LedgerStats, objectives: ObjectiveSlices) {
    this.#db = database;
    this.#outbox = outbox;
    this.#stats = stats;
    this.#objectives = objectives;
  }

  /** Returns the facts that alert rules depend on. */
  facts({ upstreams, objectives, now, ...times }: AlertQuery): AlertFacts {
    return {
      upstreams: this.#db.rows(UPSTREAMS, { ...times, names: JSON.stringify(upstreams) }),
      waiting: this.#db.value<number>(WAITING, times) ?? 0,
      dead: this.#db.rows(DEAD_LETTERS, times),
      disabled: this.#db.rows(
        `SELECT webhook_id AS id, disabled_reason AS reason, updated_at AS since
         FROM webhooks WHERE disabled_reason IN ('gone', 'failing')`,
      ),
      walBytes: this.#stats.bytes().wal,
      objectives: this.#objectives.status(objectives, now),
      open: this.#open().map(({ rule, subject }) => ({ rule, subject })),
    };
  }

  /**
   * Writes events for new conditions, for resolved ones, and for those that were last reported `remindAfterMs` ago or earlier.
   * Returns what was reported.
   */
  reconcile(
    conditions: readonly AlertCondition[],
    { now, remindAfterMs }: { now: number; remindAfterMs: number },
  ): { type: AlertEventType; alert: Alert }[] {
    return this.#db.transaction(() => {
      const open = new Map(this.#open().map((row) => [keyOf(row), row]));
      const reported: { type: AlertEventType; alert: Alert }[] = [];
      const report = (type: AlertEventType, alert: Alert) => {
        this.#outbox.addAlertEvent(type, alert, now);
        reported.push({ type, alert });
      };
      for (const condition of conditions) {
        const row = open.get(keyOf(condition));
        open.delete(keyOf(condition));
        const { rule, subject, summary, count } = condition;
        const alert = { rule, subject, summary, count, since: row?.since ?? condition.since ?? now };
        const isDue = !row || now - row.notifiedAt >= remindAfterMs;
        if (isDue) report(row ? AlertEventType.reminder : AlertEventType.raised, alert);
        if (isDue || row.summary !== summary || row.count !== count)
          this.#store({ ...alert, notifiedAt: isDue ? now : row.notifiedAt });
      }
      for (const { notifiedAt: _, ...alert } of open.values()) {
        report(AlertEventType.resolved, { ...alert, summary: resolvedSummary(alert) });
        this.#db.run`DELETE FROM alerts WHERE rule = ${alert.rule} AND subject = ${alert.subject}`;
      }
      return reported;
    });
  }

  #open(): AlertRow[] {
    return this.#db.rows('SELECT rule, subject, summary, count, since, told_at AS notifiedAt FROM alerts');
  }

  #store(row: AlertRow): void {
    this.#db.run`
      INSERT INTO alerts (rule, subject, summary, count, since, told_at)
      VALUES (${row.rule}, ${row.subject}, ${row.summary}, ${row.count}, ${row.since}, ${row.notifiedAt})
      ON CONFLICT DO UPDATE SET summary = excluded.summary, count = excluded.count, told_at = excluded.told_at`;
  }
}

function keyOf({ rule, subject }: { rule: string; subject: string }): string {
  return `${rule} ${subject}`;
}

/** Submissions that failed since @failuresSince and still have that status. */
const RECENT_AND_STILL = (status: 'failing' | 'failed') => `
  (SELECT count(DISTINCT o.submission) FROM outbox o JOIN submissions s ON s.id = o.submission
   WHERE o.upstream = u.name AND o.at >= @failuresSince
     AND o.type IN ('submission.failing', 'submission.failed') AND s.status = '${status}')`;

/** Watched submissions are only counted for an upstream with an outage, because there may be a million. */
const UPSTREAMS = `
  SELECT u.name, u.state, u.out_since AS outSince,
         iif(u.state = 'closed', 0,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1)) AS watched,
         (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1 AND s.stuck = 1
            AND s.status IN ('tracking', 'pending', 'failing')) AS stuck,
         ${RECENT_AND_STILL('failing')} AS failing, ${RECENT_AND_STILL('failed')} AS failed
  FROM upstreams u WHERE u.name IN (SELECT value FROM json_each(@names)) ORDER BY u.name`;

const WAITING = `
  SELECT count(*) FROM deliveries WHERE state = 'waiting' AND coalesce(replayed_at, created_at) < @waitingBefore`;

/**
 * Recent dead letters by destination. All callbacks count as one destination. Disabled webhooks have an alert of their own, and
 * dead letters of alert events must not raise further alerts.
 */
const DEAD_LETTERS = `
  SELECT CASE WHEN d.destination LIKE 'callback:%' THEN 'webhook:callbacks' ELSE d.destination END AS receiver,
         count(*) AS count
  FROM deliveries d JOIN outbox o ON o.seq = d.event
  WHERE d.state = 'dead' AND d.ended_at >= @deadSince AND d.dead_reason <> 'endpoint_disabled'
    AND o.type NOT LIKE 'alert.%'
  GROUP BY receiver
  HAVING receiver NOT IN (SELECT 'webhook:' || webhook_id FROM webhooks WHERE enabled = 0)`;
