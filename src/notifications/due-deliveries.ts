import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { DueDelivery } from './delivery.ts';
import {
  EVENT_COLUMNS,
  EVENT_JOINS,
  type EventRow,
  testedCallback,
  toEventRecord,
} from './event-log.ts';

type DueRow = EventRow & {
  id: number;
  attempts: number;
  callbackUrl: string | null;
};

/**
 * A batch ends early once it holds this much text of upstream responses, which may be a megabyte
 * each.
 */
const MAX_BATCH_CHARS = 256 * 1024;

/** `limit`: the most deliveries to return. `except`: the ids of those in flight. */
export type DueQuery = { now: number; limit: number; except: ReadonlySet<number> };

/**
 * Returns the earliest due deliveries of a destination that are not in `except`; at least one if
 * there is any, except those of alerts whose earlier messages are in `except`. In place of a
 * delivery of an alert, its earliest waiting one is returned, even before its time.
 */
export function readDue(
  db: LedgerDatabase,
  destination: string,
  { now, limit, except }: DueQuery,
): DueDelivery[] {
  return db.snapshot(() => {
    const ids = db.values<number>`
      SELECT id FROM deliveries WHERE state = 'waiting' AND destination = (SELECT ${destination}) AND next_at <= ${now}
      ORDER BY next_at, id LIMIT ${limit + except.size} + 0`;
    const deliveries: DueDelivery[] = [];
    const ofAlerts = new Set<number>();
    let chars = 0;
    for (const id of ids) {
      if (deliveries.length === limit || chars > MAX_BATCH_CHARS) break;
      if (except.has(id)) continue;
      let row = db.row<DueRow>(DUE, id);
      if (row && row.alert !== null) {
        const first = db.value<number>(FIRST_OF_ALERT, row.alert, destination) ?? id;
        if (except.has(first) || ofAlerts.has(first)) continue;
        ofAlerts.add(first);
        if (first !== id) row = db.row<DueRow>(DUE, first);
      }
      if (!row) continue;
      deliveries.push(toDueDelivery(row));
      chars += row.envelope?.length ?? 0;
    }
    return deliveries;
  });
}

/**
 * Returns the earliest next attempt of a delivery that is not in `except`; null if no other waits.
 */
export function nextDueAt(
  db: LedgerDatabase,
  destination: string,
  except: ReadonlySet<number>,
): number | null {
  const rows = db.rows<{ id: number; next_at: number }>`
    SELECT id, next_at FROM deliveries WHERE state = 'waiting' AND destination = (SELECT ${destination})
    ORDER BY next_at, id LIMIT ${except.size + 1} + 0`;
  return rows.find(({ id }) => !except.has(id))?.next_at ?? null;
}

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

/** The earliest waiting delivery of an alert to a destination. */
const FIRST_OF_ALERT = `
  SELECT d.id FROM outbox o CROSS JOIN deliveries d ON d.event = o.seq
  WHERE o.alert = ? AND d.destination = ? AND d.state = 'waiting' ORDER BY o.seq LIMIT 1`;
