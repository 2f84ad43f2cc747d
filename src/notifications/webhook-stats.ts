import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { DurationHistogram } from '../lib/duration-histogram.ts';
import type { DeliveryAttempt } from './delivery.ts';
import type { WebhookDay } from './webhook.ts';

const HOUR_MS = 3_600_000;
const KEPT_MS = 24 * HOUR_MS;

/**
 * Counts of the attempts at each webhook, by hour and duration. A page of webhooks reads some
 * hundred rows of each, however many deliveries there are. Throws LedgerError.
 */
export class WebhookStats {
  readonly #db: LedgerDatabase;

  constructor(database: LedgerDatabase) {
    this.#db = database;
  }

  /** Does nothing for a deleted webhook. Must be called inside a transaction. */
  count(webhookId: string, { at, durationMs, httpStatus, error }: DeliveryAttempt): void {
    const attempts = this.#db.value<number>(ADD, {
      webhookId,
      hour: hourOf(at),
      duration: DurationHistogram.bucketOf(durationMs),
      succeeded: error === null ? 1 : 0,
      responses: httpStatus === null ? 0 : 1,
    });
    // A few times an hour.
    if (attempts === 1)
      this.#db.run(DELETE_OTHERS, {
        webhookId,
        from: hourOf(at - KEPT_MS),
        to: hourOf(at + KEPT_MS),
      });
  }

  /** Returns null without attempts. */
  lastDay(webhookId: string, now: number): WebhookDay | null {
    const rows = this.#db.rows<{
      duration: number;
      attempts: number;
      succeeded: number;
      responses: number;
    }>(SUMS, { webhookId, since: hourOf(now - KEPT_MS) });
    const totalOf = (name: 'attempts' | 'succeeded') =>
      rows.reduce((total, row) => total + row[name], 0);
    const attempts = totalOf('attempts');
    if (attempts === 0) return null;
    const responses = rows.map((row) => [row.duration, row.responses]);
    const p95 = new DurationHistogram(Object.fromEntries(responses)).percentile(0.95);
    return {
      attempts,
      successRate: totalOf('succeeded') / attempts,
      responseP95Ms: p95 === null ? null : Math.round(p95),
    };
  }
}

/** Returns the beginning of the hour of a time. */
function hourOf(at: number): number {
  return at - (at % HOUR_MS);
}

const ADD = `
  INSERT INTO webhook_stats (webhook, hour, duration, attempts, succeeded, responses)
  SELECT id, @hour, @duration, 1, @succeeded, @responses FROM webhooks WHERE webhook_id = @webhookId
  ON CONFLICT DO UPDATE SET
    attempts = attempts + 1, succeeded = succeeded + @succeeded, responses = responses + @responses
  RETURNING attempts`;

const OF_WEBHOOK = 'webhook = (SELECT id FROM webhooks WHERE webhook_id = @webhookId)';
/** Also deletes the hours that a clock wrote that was far ahead. */
const DELETE_OTHERS = `DELETE FROM webhook_stats WHERE ${OF_WEBHOOK} AND hour NOT BETWEEN @from AND @to`;
const SUMS = `
  SELECT duration, sum(attempts) AS attempts, sum(succeeded) AS succeeded, sum(responses) AS responses
  FROM webhook_stats WHERE ${OF_WEBHOOK} AND hour >= @since
  GROUP BY duration`;
