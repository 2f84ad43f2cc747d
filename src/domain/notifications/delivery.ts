import type { EventRecord, UnreadableEvent } from './event-body.ts';

/** waiting: for its next attempt. dead: given up, a dead letter that can be replayed. discarded: its webhook was deleted. */
export const DeliveryState = {
  waiting: 'waiting',
  delivered: 'delivered',
  dead: 'dead',
  discarded: 'discarded',
} as const;
export type DeliveryState = (typeof DeliveryState)[keyof typeof DeliveryState];
export const DELIVERY_STATES = Object.values(DeliveryState);

/**
 * Why a delivery is dead. not_configured: its channel has not been in the settings for longer than attempts take.
 * undeliverable: its event can not be read, or not be written as the channel needs it.
 */
export const DEAD_REASONS = [
  'attempts_used_up',
  'endpoint_gone',
  'endpoint_disabled',
  'not_configured',
  'undeliverable',
] as const;
export type DeadReason = (typeof DEAD_REASONS)[number];

/** One event for one destination. Times are epoch milliseconds. */
export type Delivery = {
  id: number;
  eventId: string;
  eventType: string;
  submissionId: string | null;
  /** `webhook:<id>`, `channel:<name>`, `callback:<origin>`. What shares a destination shares its pace. */
  destination: string;
  state: DeliveryState;
  deadReason: DeadReason | null;
  attempts: number;
  /** When it is tried next; null unless it waits. */
  nextAt: number | null;
  createdAt: number;
  endedAt: number | null;
  /** Fields that the ledger holds in a form that can't be read; absent: all can. */
  unreadable?: readonly string[];
};

/** One try. */
export type DeliveryAttempt = {
  at: number;
  durationMs: number;
  /** null: there was no answer. */
  httpStatus: number | null;
  /** null: it worked. */
  error: string | null;
  /** The beginning of the answer's body. */
  response: string | null;
};

/** A delivery that is due, with what is sent. */
export type DueDelivery = {
  id: number;
  /** How many there were. */
  attempts: number;
  /** Of its webhook: who it was sent to, should that change meanwhile; null: it has none. */
  revision: number | null;
  event: EventRecord;
  callbackUrl: string | null;
};

/** A delivery that is due and can not be made. */
export type UnreadableDelivery = Omit<DueDelivery, 'event'> & { event: UnreadableEvent };

/** What came of one attempt at one delivery. */
export type DeliveryResult = {
  deliveryId: number;
  destination: string;
  /** How many there were before: a replay in between makes it another story. */
  attempts: number;
  /** Of its webhook, when the attempt began. */
  revision: number | null;
  attempt: DeliveryAttempt;
  /** retry: at that time. gone: the receiver wants nothing any more, which disables its webhook. */
  next: { kind: 'delivered' } | { kind: 'retry'; at: number } | { kind: 'dead'; reason: DeadReason } | { kind: 'gone' };
};

export const webhookDestination = (webhookId: string) => `webhook:${webhookId}`;
export const channelDestination = (name: string) => `channel:${name}`;
/** Callbacks to one server share its pace, whosever they are: an origin has one receiver behind it more often than not. */
export const callbackDestination = (url: string) => `callback:${URL.parse(url)?.origin ?? url}`;

export type Destination =
  | { kind: 'webhook'; webhookId: string }
  | { kind: 'channel'; name: string }
  | { kind: 'callback'; origin: string };

/** A destination that no version writes counts as a channel that is not configured. */
export function parseDestination(text: string): Destination {
  const [kind, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  if (kind === 'webhook') return { kind, webhookId: rest };
  if (kind === 'channel') return { kind, name: rest };
  if (kind === 'callback') return { kind, origin: rest };
  return { kind: 'channel', name: text };
}
