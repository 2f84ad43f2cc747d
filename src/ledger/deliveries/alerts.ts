import type Database from 'better-sqlite3';
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

/** Which conditions were told, so that each is told once when it begins and once when it is over. Throws LedgerError. */
export class Alerts {
  readonly #transactions: LedgerDatabase;
  readonly #outbox: Outbox;
  readonly #figures: LedgerStats;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(transactions: LedgerDatabase, outbox: Outbox, figures: LedgerStats) {
    this.#transactions = transactions;
    this.#outbox = outbox;
    this.#figures = figures;
    this.#sql = prepareStatements(transactions.db);
  }

  facts({ upstreams, ...times }: AlertQuery): AlertFacts {
    return this.#transactions.read(() => ({
      upstreams: this.#sql.upstreams.all({ ...times, names: JSON.stringify(upstreams) }) as AlertFacts['upstreams'],
      waiting: this.#sql.waiting.get(times) as number,
      dead: this.#sql.dead.all(times) as AlertFacts['dead'],
      disabled: this.#sql.disabled.all() as AlertFacts['disabled'],
      walBytes: this.#figures.bytes().wal,
      open: this.#open().map(({ rule, subject }) => ({ rule, subject })),
    }));
  }

  /** Tells what is new, what is over, and what still holds although it was told so long ago. Gives back what was told. */
  reconcile(
    conditions: readonly AlertCondition[],
    times: { now: number; remindAfterMs: number },
  ): { type: AlertEventType; alert: Alert }[] {
    const { now, remindAfterMs } = times;
    return this.#transactions.transaction(() => {
      const open = new Map(this.#open().map((row) => [nameOf(row), row]));
      const told: { type: AlertEventType; alert: Alert }[] = [];
      const tell = (type: AlertEventType, alert: Alert) => {
        this.#outbox.addAlertEvent(type, alert, now);
        told.push({ type, alert });
      };
      for (const condition of conditions) {
        const row = open.get(nameOf(condition));
        open.delete(nameOf(condition));
        const { rule, subject, summary, count } = condition;
        const alert = { rule, subject, summary, count, since: row?.since ?? condition.since ?? now };
        const isDue = !row || now - row.told_at >= remindAfterMs;
        if (isDue) tell(row ? AlertEventType.reminder : AlertEventType.raised, alert);
        const toldAt = isDue ? now : row.told_at;
        if (isDue || row.summary !== summary || row.count !== count) this.#sql.keep.run({ ...alert, toldAt });
      }
      for (const { told_at: _, ...alert } of open.values()) {
        tell(AlertEventType.resolved, { ...alert, summary: resolvedSummary(alert) });
        this.#sql.forget.run({ rule: alert.rule, subject: alert.subject });
      }
      return told;
    });
  }

  #open(): AlertRow[] {
    return this.#sql.open.all() as AlertRow[];
  }
}

type AlertRow = {
  rule: AlertRule;
  subject: string;
  summary: string;
  count: number | null;
  since: number;
  told_at: number;
};

function nameOf({ rule, subject }: { rule: string; subject: string }): string {
  return `${rule} ${subject}`;
}

/** One that recovered meanwhile counts no more. */
const LATELY_AND_STILL = (status: 'failing' | 'failed') => `
             (SELECT count(DISTINCT o.submission) FROM outbox o JOIN submissions s ON s.id = o.submission
              WHERE o.upstream = u.name AND o.at >= @failuresSince
                AND o.type IN ('submission.failing', 'submission.failed') AND s.status = '${status}')`;

function prepareStatements(db: Database.Database) {
  return {
    upstreams: db.prepare(`
      -- How each upstream and its submissions are.
      SELECT u.name, u.state, u.out_since AS outSince,
             -- Only told of an upstream that is out: there may be a million.
             iif(u.state = 'closed', 0,
                 (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1)) AS watched,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1 AND s.stuck = 1
                AND s.status IN ('tracking', 'pending', 'failing')) AS stuck,
             ${LATELY_AND_STILL('failing')} AS failing, ${LATELY_AND_STILL('failed')} AS failed
      FROM upstreams u WHERE u.name IN (SELECT value FROM json_each(@names)) ORDER BY u.name`),
    waiting: db
      .prepare(
        "SELECT count(*) FROM deliveries WHERE state = 'waiting' AND coalesce(replayed_at, created_at) < @waitingBefore",
      )
      .pluck(),
    dead: db.prepare(`
      -- What was given up lately, of destinations that could be sent to. Callbacks count as one, however many receivers they
      -- have. An alert that could not be told is no reason for another one.
      SELECT CASE WHEN d.destination LIKE 'callback:%' THEN 'webhook:callbacks' ELSE d.destination END AS receiver,
             count(*) AS count
      FROM deliveries d JOIN outbox o ON o.seq = d.event
      WHERE d.state = 'dead' AND d.ended_at >= @deadSince AND d.dead_reason <> 'endpoint_disabled'
        AND o.type NOT LIKE 'alert.%'
      GROUP BY receiver
      HAVING receiver NOT IN (SELECT 'webhook:' || webhook_id FROM webhooks WHERE enabled = 0)`),
    disabled: db.prepare(`
      -- Webhooks that nobody disabled by hand.
      SELECT webhook_id AS id, disabled_reason AS reason, updated_at AS since
      FROM webhooks WHERE disabled_reason IN ('gone', 'failing')`),
    open: db.prepare('SELECT rule, subject, summary, count, since, told_at FROM alerts'),
    keep: db.prepare(`
      -- What holds, as it was seen last.
      INSERT INTO alerts (rule, subject, summary, count, since, told_at)
      VALUES (@rule, @subject, @summary, @count, @since, @toldAt)
      ON CONFLICT DO UPDATE SET summary = excluded.summary, count = excluded.count, told_at = excluded.told_at`),
    forget: db.prepare('DELETE FROM alerts WHERE rule = @rule AND subject = @subject'),
  };
}
