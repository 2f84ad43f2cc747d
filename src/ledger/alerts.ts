import type Database from 'better-sqlite3';
import type { Alert, AlertFacts, AlertRule, Condition } from '../monitor/alert.ts';
import { AlertEventType } from '../monitor/events.ts';
import type { Outbox } from './outbox.ts';
import type { Transactions } from './transactions.ts';

/** Which conditions were told, so that each is told once when it begins and once when it is over. Throws LedgerError. */
export class Alerts {
  readonly #transactions: Transactions;
  readonly #outbox: Outbox;
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(transactions: Transactions, outbox: Outbox) {
    this.#transactions = transactions;
    this.#outbox = outbox;
    this.#sql = prepareStatements(transactions.db);
  }

  /** `failuresSince`: submissions that failed from then on count. */
  facts(failuresSince: number): AlertFacts {
    return this.#transactions.read(() => ({
      upstreams: this.#sql.upstreams.all({ failuresSince }) as AlertFacts['upstreams'],
      waiting: this.#sql.waiting.pluck().get() as number,
      dead: this.#sql.dead.all() as AlertFacts['dead'],
      disabled: this.#sql.disabled.all() as AlertFacts['disabled'],
    }));
  }

  /** Tells what is new, what is over, and what still holds although it was told so long ago. Gives back what was told. */
  reconcile(
    conditions: readonly Condition[],
    times: { now: number; remindAfterMs: number },
  ): { type: AlertEventType; alert: Alert }[] {
    const { now, remindAfterMs } = times;
    return this.#transactions.run(() => {
      const open = new Map((this.#sql.open.all() as AlertRow[]).map((row) => [nameOf(row), row]));
      const told: { type: AlertEventType; alert: Alert }[] = [];
      const tell = (type: AlertEventType, alert: Alert) => {
        this.#outbox.addAlertEvent(type, alert, now);
        told.push({ type, alert });
      };
      for (const condition of conditions) {
        const { rule, subject } = condition;
        const row = open.get(nameOf(condition));
        open.delete(nameOf(condition));
        const alert = { ...condition, since: row?.since ?? now };
        if (!row) tell(AlertEventType.raised, alert);
        else if (now - row.told_at >= remindAfterMs) tell(AlertEventType.reminder, alert);
        const toldAt = told.at(-1)?.alert === alert ? now : (row?.told_at ?? now);
        this.#sql.keep.run({
          rule,
          subject,
          summary: condition.summary,
          count: condition.count,
          since: alert.since,
          toldAt,
        });
      }
      for (const row of open.values()) {
        const { rule, subject, summary, count, since } = row;
        tell(AlertEventType.resolved, { rule, subject, summary, count, since });
        this.#sql.forget.run({ rule, subject });
      }
      return told;
    });
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

function prepareStatements(db: Database.Database) {
  return {
    upstreams: db.prepare(`
      -- How each upstream and its submissions are.
      SELECT u.name, u.state, u.out_since AS outSince,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1) AS watched,
             (SELECT count(*) FROM submissions s WHERE s.upstream = u.name AND s.watched = 1 AND s.stuck = 1
                AND s.status IN ('tracking', 'pending', 'failing')) AS stuck,
             (SELECT count(DISTINCT o.submission) FROM outbox o WHERE o.upstream = u.name AND o.at >= @failuresSince
                AND o.type IN ('submission.failing', 'submission.failed')) AS failed
      FROM upstreams u ORDER BY u.name`),
    waiting: db.prepare("SELECT count(*) FROM deliveries WHERE state = 'waiting'"),
    dead: db.prepare(`
      -- Dead letters of destinations that could be sent to.
      -- Callbacks count as one, however many receivers they have.
      SELECT CASE WHEN destination LIKE 'callback:%' THEN 'webhook:callbacks' ELSE destination END AS receiver,
             count(*) AS count
      FROM deliveries WHERE state = 'dead' GROUP BY receiver
      HAVING receiver NOT IN (SELECT 'webhook:' || webhook_id FROM webhooks WHERE enabled = 0)`),
    disabled: db.prepare(`
      -- Webhooks that nobody disabled by hand.
      SELECT webhook_id AS id, disabled_reason AS reason, url, updated_at AS since
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
