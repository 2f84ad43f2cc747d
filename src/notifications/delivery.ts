import type { DamagedEvent, EventRecord } from './event-body.ts';

/**
 * waiting: for its next attempt. dead: a dead letter, which can be replayed. discarded: its webhook
 * was deleted.
 */
export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'discarded'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/**
 * Why a delivery is dead. not_configured: its channel has been missing in the settings for the
 * whole retry schedule. undeliverable: its event is damaged, or cannot be converted to the format
 * of the channel.
 */
export const DEAD_REASONS = [
  'attempts_used_up',
  'endpoint_gone',
  'endpoint_disabled',
  'not_configured',
  'undeliverable',
] as const;
export type DeadReason = (typeof DEAD_REASONS)[number];
/**
 * Deliveries to one destination that became dead letters. `callback:` without an origin stands for
 * all callbacks.
 */
export type DeadLetters = { destination: string; reason: DeadReason; count: number };

/** One event for one destination. Times are epoch milliseconds. */
export type Delivery = {
  id: number;
  eventId: string;
  eventType: string;
  submissionId: string | null;
  /**
   * `webhook:<id>`, `channel:<name>` or `callback:<origin>`. The deliveries of a destination share
   * its pace.
   */
  destination: string;
  state: DeliveryState;
  deadReason: DeadReason | null;
  attempts: number;
  /** The result of the newest attempt, as in `DeliveryAttempt`; both null before the first. */
  lastHttpStatus: number | null;
  lastError: string | null;
  /** Time of the next attempt; null unless waiting. */
  nextAt: number | null;
  createdAt: number;
  endedAt: number | null;
};

export type DeliveryAttempt = {
  at: number;
  durationMs: number;
  /** null: there was no response. */
  httpStatus: number | null;
  /** null: it succeeded. */
  error: string | null;
  /** The beginning of the response body. */
  response: string | null;
};

/** A delivery that is due, with its content. */
export type DueDelivery = {
  id: number;
  /** Number of past attempts. */
  attempts: number;
  /** Revision of its webhook, which may change during an attempt; null: there is no webhook. */
  revision: number | null;
  event: EventRecord;
  callbackUrl: string | null;
};

/** A delivery that is due and whose event is damaged. */
export type DamagedDelivery = Omit<DueDelivery, 'event'> & { event: DamagedEvent };

/** The result of one attempt at one delivery. */
export type DeliveryResult = {
  deliveryId: number;
  destination: string;
  /** Number of attempts before; a replay resets it, which makes this result obsolete. */
  attempts: number;
  /** Revision of its webhook when the attempt began. */
  revision: number | null;
  attempt: DeliveryAttempt;
  /** retry: at that time. gone: the receiver responded 410, which disables its webhook. */
  next:
    | { kind: 'delivered' }
    | { kind: 'retry'; at: number }
    | { kind: 'dead'; reason: DeadReason }
    | { kind: 'gone' };
};

export const webhookDestination = (webhookId: string) => `webhook:${webhookId}`;
export const channelDestination = (name: string) => `channel:${name}`;
/** Callbacks to one origin share a destination, because an origin usually has one receiver. */
export const callbackDestination = (url: string) => `callback:${URL.parse(url)?.origin ?? url}`;

export type Destination =
  | { kind: 'webhook'; webhookId: string }
  | { kind: 'channel'; name: string }
  | { kind: 'callback'; origin: string };

/** Parses a stored destination. An unknown form counts as a channel that is not configured. */
export function parseDestination(text: string): Destination {
  const [kind, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  if (kind === 'webhook') return { kind, webhookId: rest };
  if (kind === 'channel') return { kind, name: rest };
  if (kind === 'callback') return { kind, origin: rest };
  return { kind: 'channel', name: text };
}
