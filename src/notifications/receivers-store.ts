import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { nearestTime } from '../lib/json.ts';
import { LONGEST_WAIT_MS } from './channels/channel.ts';
import { CALLBACKS } from './delivery.ts';
import type { EventRoutes } from './outbox.ts';

/** The newest results of a receiver. Epoch milliseconds; null: never. */
export type ReceiverResults = {
  succeededAt: number | null;
  failedAt: number | null;
  /** Of the newest failure: one sentence without secrets and without the URL. */
  error: string | null;
  /** The first failure after the newest success; null: the newest attempt succeeded. */
  failingSince: number | null;
};

type DeliveryCounts = {
  waiting: number;
  /** Of the waiting ones, those that have waited for more than LATE_MS. */
  late: number;
  oldestWaitingAt: number | null;
};

/** A webhook, all callbacks together (CALLBACKS), or a channel. */
export type Receiver = ReceiverResults &
  DeliveryCounts & { destination: string; description: string | null };

/** Thousands of events at once take some time. */
const LATE_MS = 60_000;
const UNUSED: ReceiverResults & DeliveryCounts = {
  ...{ succeededAt: null, failedAt: null, error: null, failingSince: null },
  ...{ waiting: 0, late: 0, oldestWaitingAt: null },
};

/** What the destinations of deliveries last did. Throws LedgerError. */
export class Receivers {
  readonly #db: LedgerDatabase;
  readonly #routes: EventRoutes;

  constructor(database: LedgerDatabase, routes: EventRoutes) {
    this.#db = database;
    this.#routes = routes;
  }

  /**
   * Records an attempt. If it is delivered and has an error, some recipients refused it. Failures
   * further apart than two attempts belong to different outages. The earlier time counts: a clock
   * may have been ahead. Returns since when all attempts have failed, or null. Must be called
   * inside a transaction.
   */
  record(
    destination: string,
    { isDelivered, error, at }: { isDelivered: boolean; error: string | null; at: number },
  ): number | null {
    const failingSince = this.#db.value<number | null>(RECORD, {
      destination,
      succeededAt: isDelivered ? at : null,
      failedAt: error === null ? null : at,
      error,
      failingSince: isDelivered ? null : at,
    });
    return failingSince ?? null;
  }

  forget(destination: string): void {
    this.#db.run`DELETE FROM receivers WHERE destination = ${destination}`;
  }

  /** By destination, also of channels that are no longer configured. */
  results(): Map<string, ReceiverResults> {
    return byDestination(this.#db.rows(RESULTS));
  }

  /** Enabled webhooks, the callbacks as one, and channels. */
  list(now: number): Receiver[] {
    const results = this.results();
    const rows = this.#db.rows<DeliveryCounts & { destination: string }>(COUNTS, {
      lateBefore: now - LATE_MS,
    });
    const counts = byDestination(
      rows.map(({ oldestWaitingAt: at, ...row }) => ({
        ...row,
        oldestWaitingAt: at === null ? null : nearestTime(at),
      })),
    );
    return this.#routes.enabled().map(({ destination, description }) => ({
      ...{ destination, description, ...UNUSED },
      ...results.get(destination),
      ...counts.get(destination),
    }));
  }

  /** Dead letters by channel; reads all dead letters, of which there may be a million. */
  deadByChannel(): Map<string, number> {
    const rows = this.#db.rows<{ destination: string; dead: number }>(DEAD);
    return new Map(rows.map(({ destination, dead }) => [destination, dead]));
  }
}

function byDestination<T>(rows: readonly (T & { destination: string })[]): Map<string, T> {
  return new Map(rows.map((row) => [row.destination, row]));
}

const RECORD = `
  INSERT INTO receivers (destination, succeeded_at, failed_at, error, failing_since)
  VALUES (@destination, @succeededAt, @failedAt, @error, @failingSince)
  ON CONFLICT DO UPDATE SET
    succeeded_at = coalesce(@succeededAt, succeeded_at),
    failed_at = coalesce(@failedAt, failed_at),
    error = coalesce(@error, error),
    failing_since = CASE WHEN @failingSince IS NULL THEN NULL
      WHEN failed_at < @failingSince - ${LONGEST_WAIT_MS} THEN @failingSince
      ELSE min(coalesce(failing_since, @failingSince), @failingSince) END
  RETURNING failing_since`;

const RESULTS = `
  SELECT destination, succeeded_at AS succeededAt, failed_at AS failedAt, error, failing_since AS failingSince
  FROM receivers`;

const COUNTS = `
  SELECT iif(destination LIKE 'callback:%', '${CALLBACKS}', destination) AS destination,
         sum(waiting) AS waiting, sum(late) AS late, min(oldestWaitingAt) AS oldestWaitingAt
  FROM (
    SELECT destination, count(*) AS waiting, sum(waiting_since < @lateBefore) AS late,
           min(waiting_since) AS oldestWaitingAt
    FROM deliveries WHERE state = 'waiting' GROUP BY destination)
  GROUP BY 1`;

/** Reads one partial index; otherwise, SQLite would read all deliveries. */
const DEAD = `
  SELECT destination, count(*) AS dead FROM deliveries INDEXED BY deliveries_dead
  WHERE state = 'dead' AND destination >= 'channel:' AND destination < 'channel;' GROUP BY destination`;
