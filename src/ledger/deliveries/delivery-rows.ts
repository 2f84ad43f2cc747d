import {
  type DamagedDelivery,
  DEAD_REASONS,
  type Delivery,
  type DueDelivery,
} from '../../domain/notifications/delivery.ts';
import { storedOneOf, storedTime } from '../../domain/stored.ts';
import { type EventRow, testedCallback, toEventRecord } from '../events/event-rows.ts';

export type DueRow = EventRow & { id: number; attempts: number; revision: number | null; callbackUrl: string | null };

export function toDueDelivery(row: DueRow): DueDelivery | DamagedDelivery {
  const { id, attempts, revision } = row;
  const event = toEventRecord(row);
  const waiting = { id, attempts, revision, callbackUrl: row.callbackUrl ?? testedCallback(row) };
  return 'damage' in event ? { ...waiting, event } : { ...waiting, event };
}

/** Throws DamagedRowError. */
export function toDelivery(row: Delivery): Delivery {
  const name = `the delivery ${row.id}`;
  if (row.deadReason !== null) storedOneOf(DEAD_REASONS, row.deadReason, name, 'dead_reason');
  storedTime(row.createdAt, name, 'created_at');
  return row;
}

export const SELECT_DELIVERY = `
  SELECT d.id, d.destination, d.state, d.dead_reason AS deadReason, d.attempts, d.next_at AS nextAt,
         d.created_at AS createdAt, d.ended_at AS endedAt, o.id AS eventId, o.type AS eventType,
         s.submission_id AS submissionId, a.http_status AS lastHttpStatus, a.error AS lastError
  FROM deliveries d JOIN outbox o ON o.seq = d.event LEFT JOIN submissions s ON s.id = o.submission
  LEFT JOIN attempts a ON a.id = (SELECT max(id) FROM attempts WHERE delivery = d.id)`;
