import { factTable } from '../cli/table.ts';
import type { Webhook } from '../client/index.ts';

/** Returns the facts about a webhook, one per line. */
export function webhookText(webhook: Webhook): string {
  const facts: [string, string | null][] = [
    ['id', webhook.id],
    ['url', webhook.url ?? 'the callback_url of each submission'],
    ['types', webhook.types.join(', ')],
    ['metadata', webhook.metadata && JSON.stringify(webhook.metadata)],
    ['description', webhook.description || null],
    ['signature', webhook.signature],
    ...webhook.public_keys.map((key): [string, string] => ['public key', key]),
    ['state', webhookState(webhook)],
    ['created', webhook.created_at],
    ['updated', webhook.updated_at],
  ];
  return factTable(facts, 4_000);
}

export function webhookState({ enabled, disabled_reason, failing_since }: Webhook): string {
  if (!enabled) return `disabled (${disabled_reason})`;
  return failing_since === null ? 'enabled' : `failing since ${failing_since}`;
}
