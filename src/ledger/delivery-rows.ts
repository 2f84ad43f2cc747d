import type { DeadReason, Delivery, DeliveryState, Waiting } from '../monitor/delivery.ts';
import { type EventRow, toEventRecord } from './event-rows.ts';

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

export function toWaiting(row: DueRow): Waiting {
  const { id, attempts, revision, callback_url } = row;
  return { id, attempts, revision, event: toEventRecord(row), callbackUrl: callback_url };
}

export function toDelivery(row: DeliveryRow): Delivery {
  return {
    id: row.id,
    eventId: row.event_id,
    eventType: row.type,
    submissionId: row.submission_id,
    destination: row.destination,
    state: row.state,
    deadReason: row.dead_reason,
    attempts: row.attempts,
    nextAt: row.next_at,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}

export const DELIVERY_COLUMNS =
  'd.id, d.destination, d.state, d.dead_reason, d.attempts, d.next_at, d.created_at, d.ended_at';
