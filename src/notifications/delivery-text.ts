import { factTable } from '../cli/table.ts';
import type { Delivery, DeliveryDetails } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

/** Shows the complete stored response. */
const MAX_RESPONSE_CHARS = 5_000;

/**
 * Returns the fields of a delivery and one line per attempt, followed by the response of the
 * receiver.
 */
export function deliveryText(delivery: DeliveryDetails): string {
  const facts: [string, string | null][] = [
    ['delivery', String(delivery.id)],
    ['event', `${delivery.event_id}  ${delivery.event_type}`],
    ['submission', delivery.submission_id],
    ['destination', delivery.destination],
    ['state', deliveryState(delivery)],
    ['created', delivery.created_at],
    ['ended', delivery.ended_at],
  ];
  const head = factTable(facts);
  const attempts = delivery.attempts.map(({ at, duration_ms, http_status, error, response }) => {
    const status = http_status === null ? 'no response' : `HTTP ${http_status}`;
    const line = [
      `  ${at}`,
      status,
      `${Math.round(duration_ms)} ms`,
      ...(error === null ? [] : [error]),
    ].map((text) => escapeText(text));
    const body = response ? `    ${escapeText(response, MAX_RESPONSE_CHARS)}\n` : '';
    return `${line.join('  ')}\n${body}`;
  });
  return `${head}attempts${attempts.length === 0 ? '    none' : ''}\n${attempts.join('')}`;
}

export function deliveryState({ state, dead_reason, next_at }: Delivery): string {
  if (state === 'waiting' && next_at !== null) return `waiting until ${next_at}`;
  return dead_reason === null ? state : `${state} (${dead_reason})`;
}
