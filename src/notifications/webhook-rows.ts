import {
  DamagedRowError,
  parseStored,
  storedObject,
  storedOneOf,
  storedTime,
} from '../lib/stored.ts';
import type { Subscription } from './subscription.ts';
import { DISABLED_REASONS, SIGNATURES, type Webhook } from './webhook.ts';

/** A webhook as stored, named like its fields. `position`: its place in a list. */
export type WebhookRow = Omit<Webhook, 'types' | 'metadata' | 'publicKeys' | 'enabled'> & {
  position: number;
  types: string;
  metadata: string | null;
  enabled: number;
};

export const SELECT_WEBHOOK = `
  SELECT id AS position, webhook_id AS id, url, types, metadata, description, signature, enabled,
         disabled_reason AS disabledReason, failing_since AS failingSince, created_at AS createdAt,
         updated_at AS updatedAt
  FROM webhooks`;

/** Throws DamagedRowError. */
export function toWebhook({ position: _, ...row }: WebhookRow, publicKeys: string[]): Webhook {
  const name = `the webhook ${row.id}`;
  const { signature, disabledReason, createdAt, updatedAt } = row;
  return {
    ...row,
    ...readSubscription(row),
    signature: storedOneOf(SIGNATURES, signature, name, 'signature'),
    publicKeys,
    enabled: row.enabled === 1,
    disabledReason:
      disabledReason && storedOneOf(DISABLED_REASONS, disabledReason, name, 'disabled_reason'),
    createdAt: storedTime(createdAt, name, 'created_at'),
    updatedAt: storedTime(updatedAt, name, 'updated_at'),
  };
}

/** Returns the events that a webhook subscribes to. Throws DamagedRowError. */
export function readSubscription({
  id,
  ...row
}: Pick<WebhookRow, 'id' | 'types' | 'metadata'>): Subscription {
  const name = `the webhook ${id}`;
  const types = parseStored(row.types, name, 'types');
  if (!Array.isArray(types)) throw new DamagedRowError(name, 'types');
  return { types, metadata: storedObject(row.metadata, name, 'metadata') };
}
