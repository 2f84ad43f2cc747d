import {
  DEAD_REASONS,
  type DeadReason,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryState,
  type DueDelivery,
  type UnreadableDelivery,
} from '../../domain/notifications/delivery.ts';
import { isTime, nearestTime } from '../../domain/stored.ts';
import { type EventRow, toEventRecord } from '../events/event-rows.ts';
import { unreadableTimes } from '../submissions/submission-rows.ts';

export type DueRow = EventRow & { id: number; attempts: number; revision: number | null; callback_url: string | null };

export type DeliveryRow = {
  id: number;
  event_id: string;
  type: string;
  submission_id: string | null;
  destination: string;
  state: DeliveryState;
  dead_reason: DeadReason | null;
  attempts: number;
  next_at: number | null;
  created_at: number;
  ended_at: number | null;
};

export function toDueDelivery(row: DueRow): DueDelivery | UnreadableDelivery {
  const { id, attempts, revision, callback_url } = row;
  const event = toEventRecord(row);
  const waiting = { id, attempts, revision, callbackUrl: callback_url };
  return 'unreadable' in event ? { ...waiting, event } : { ...waiting, event };
}

/** Replaces invalid values by null or the nearest valid time and lists them in `unreadable`. */
export function toDelivery(row: DeliveryRow): Delivery {
  const { dead_reason: reason } = row;
  const isReason = reason === null || DEAD_REASONS.includes(reason);
  const unreadable = [
    ...(isReason ? [] : ['dead_reason']),
    ...unreadableTimes(row, ['next_at', 'created_at', 'ended_at']),
  ];
  return {
    ...(unreadable.length > 0 && { unreadable }),
    id: row.id,
    eventId: row.event_id,
    eventType: row.type,
    submissionId: row.submission_id,
    destination: row.destination,
    state: row.state,
    deadReason: isReason ? reason : null,
    attempts: row.attempts,
    nextAt: row.next_at === null ? null : nearestTime(row.next_at),
    createdAt: nearestTime(row.created_at),
    endedAt: row.ended_at === null ? null : nearestTime(row.ended_at),
  };
}

export function toAttempt(row: DeliveryAttempt): DeliveryAttempt {
  return isTime(row.at) ? row : { ...row, at: nearestTime(row.at) };
}

export const DELIVERY_COLUMNS =
  'd.id, d.destination, d.state, d.dead_reason, d.attempts, d.next_at, d.created_at, d.ended_at';
