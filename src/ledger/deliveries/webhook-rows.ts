import type { Subscription } from '../../domain/notifications/subscription.ts';
import {
  DISABLED_REASONS,
  type DisabledReason,
  SIGNATURES,
  type Signature,
  type Webhook,
} from '../../domain/notifications/webhook.ts';
import { nearestTime, readStored, readStoredObject } from '../../domain/stored.ts';
import { unreadableTimes } from '../submissions/submission-rows.ts';

export type WebhookRow = {
  id: number;
  webhook_id: string;
  url: string | null;
  types: string;
  metadata: string | null;
  description: string;
  signature: Signature;
  enabled: number;
  disabled_reason: DisabledReason | null;
  failing_since: number | null;
  created_at: number;
  updated_at: number;
};

/** Replaces invalid values by the nearest valid ones and lists them in `unreadable`. */
export function toWebhook(row: WebhookRow, publicKeys: string[]): Webhook {
  const { types, metadata, unreadable: unreadableSubscription = [] } = readSubscription(row);
  const { failing_since, created_at, updated_at } = row;
  const isSignature = SIGNATURES.includes(row.signature);
  const isReason = row.disabled_reason === null || DISABLED_REASONS.includes(row.disabled_reason);
  const unreadable = [
    ...unreadableSubscription,
    ...(isSignature ? [] : ['signature']),
    ...(isReason ? [] : ['disabled_reason']),
    ...unreadableTimes({ failing_since, created_at, updated_at }),
  ];
  return {
    ...(unreadable.length > 0 && { unreadable }),
    id: row.webhook_id,
    url: row.url,
    types,
    metadata,
    description: row.description,
    signature: isSignature ? row.signature : 'v1',
    publicKeys,
    enabled: row.enabled === 1,
    disabledReason: isReason ? row.disabled_reason : 'operator',
    failingSince: row.failing_since === null ? null : nearestTime(row.failing_since),
    createdAt: nearestTime(row.created_at),
    updatedAt: nearestTime(row.updated_at),
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
