import {
  DEAD_REASONS,
  type Delivery,
  type DeliveryAttempt,
  type DueDelivery,
  type UnreadableDelivery,
} from '../../domain/notifications/delivery.ts';
import { isTime, nearestTime } from '../../domain/stored.ts';
import { type EventRow, testedCallback, toEventRecord } from '../events/event-rows.ts';
import { unreadableTimes } from '../submissions/submission-rows.ts';

export type DueRow = EventRow & { id: number; attempts: number; revision: number | null; callbackUrl: string | null };

export function toDueDelivery(row: DueRow): DueDelivery | UnreadableDelivery {
  const { id, attempts, revision } = row;
  const event = toEventRecord(row);
  const waiting = { id, attempts, revision, callbackUrl: row.callbackUrl ?? testedCallback(row) };
  return 'unreadable' in event ? { ...waiting, event } : { ...waiting, event };
}

/** Replaces invalid values by null or the nearest valid time and lists their columns in `unreadable`. */
export function toDelivery(row: Delivery): Delivery {
  const { deadReason, nextAt, createdAt, endedAt } = row;
  const isReason = deadReason === null || DEAD_REASONS.includes(deadReason);
  const times = { next_at: nextAt, created_at: createdAt, ended_at: endedAt };
  const unreadable = [...(isReason ? [] : ['dead_reason']), ...unreadableTimes(times)];
  if (unreadable.length === 0) return row;
  return {
    ...row,
    unreadable,
    deadReason: isReason ? deadReason : null,
    nextAt: nextAt === null ? null : nearestTime(nextAt),
    createdAt: nearestTime(createdAt),
    endedAt: endedAt === null ? null : nearestTime(endedAt),
  };
}

export function toAttempt(row: DeliveryAttempt): DeliveryAttempt {
  return isTime(row.at) ? row : { ...row, at: nearestTime(row.at) };
}

export const SELECT_DELIVERY = `
  SELECT d.id, d.destination, d.state, d.dead_reason AS deadReason, d.attempts, d.next_at AS nextAt,
         d.created_at AS createdAt, d.ended_at AS endedAt, o.id AS eventId, o.type AS eventType,
         s.submission_id AS submissionId, a.http_status AS lastHttpStatus, a.error AS lastError
  FROM deliveries d JOIN outbox o ON o.seq = d.event LEFT JOIN submissions s ON s.id = o.submission
  LEFT JOIN attempts a ON a.id = (SELECT max(id) FROM attempts WHERE delivery = d.id)`;
