import type { Subscription } from '../../domain/notifications/subscription.ts';
import { DISABLED_REASONS, SIGNATURES, type Webhook } from '../../domain/notifications/webhook.ts';
import { nearestTime, readStored, readStoredObject } from '../../domain/stored.ts';
import { unreadableTimes } from '../submissions/submission-rows.ts';

/** A webhook as stored, named like its fields. `position`: its place in a list. */
export type WebhookRow = Omit<Webhook, 'types' | 'metadata' | 'publicKeys' | 'enabled' | 'unreadable'> & {
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

/** Replaces invalid values by the nearest valid ones and lists them in `unreadable`. */
export function toWebhook({ position: _, ...row }: WebhookRow, publicKeys: string[]): Webhook {
  const { types, metadata, unreadable: unreadableSubscription = [] } = readSubscription(row);
  const { signature, disabledReason, failingSince, createdAt, updatedAt } = row;
  const isSignature = SIGNATURES.includes(signature);
  const isReason = disabledReason === null || DISABLED_REASONS.includes(disabledReason);
  const unreadable = [
    ...unreadableSubscription,
    ...(isSignature ? [] : ['signature']),
    ...(isReason ? [] : ['disabled_reason']),
    ...unreadableTimes({ failing_since: failingSince, created_at: createdAt, updated_at: updatedAt }),
  ];
  return {
    ...row,
    ...(unreadable.length > 0 && { unreadable }),
    types,
    metadata,
    signature: isSignature ? signature : 'v1',
    publicKeys,
    enabled: row.enabled === 1,
    disabledReason: isReason ? disabledReason : 'operator',
    failingSince: failingSince === null ? null : nearestTime(failingSince),
    createdAt: nearestTime(createdAt),
    updatedAt: nearestTime(updatedAt),
  };
}

/** Returns the events that a webhook subscribes to. An invalid subscription matches no event, because matching all is worse. */
export function readSubscription(
  row: Pick<WebhookRow, 'types' | 'metadata'>,
): Subscription & { unreadable?: string[] } {
  const types = readStored(row.types)?.value;
  const metadata = readStoredObject(row.metadata);
  const areTypes = Array.isArray(types) && types.every((type) => typeof type === 'string');
  if (areTypes && metadata !== undefined) return { types, metadata };
  const unreadable = [...(areTypes ? [] : ['types']), ...(metadata === undefined ? ['metadata'] : [])];
  return { types: [], metadata: metadata ?? null, unreadable };
}
