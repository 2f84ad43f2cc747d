import type { Position, Walk } from '../ledger/page.ts';
import { canonicalId } from '../submissions/submission.ts';
import type { DamagedEvent, EventRecord } from './event-body.ts';
import { CALLBACKS_ID } from './webhook.ts';

/**
 * waiting: for its next attempt. dead: a dead letter, which can be replayed. discarded: its webhook
 * was deleted.
 */
export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'discarded'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The states by which a list is filtered. failing: waiting for a retry after a failed attempt. */
export const DELIVERY_FILTERS = [...DELIVERY_STATES, 'failing'] as const;
export type DeliveryStateFilter = (typeof DELIVERY_FILTERS)[number];

/**
 * Why a delivery is dead. not_configured: its channel is not in the settings. undeliverable: its
 * event is damaged, or cannot be converted to the format of the channel.
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
  /** null: there was no response, or the channel does not use HTTP. */
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
  event: EventRecord | DamagedEvent;
  callbackUrl: string | null;
};

/** The result of one attempt at one delivery. */
export type DeliveryResult = {
  deliveryId: number;
  destination: string;
  /** Number of attempts before; a replay resets it, which makes this result obsolete. */
  attempts: number;
  /** The URL of the attempt; null for a channel. A failure there does not count for another URL. */
  address: string | null;
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

/**
 * Conditions that all apply. Times are epoch milliseconds; `since` includes its time, `until`
 * excludes it.
 */
export type DeliveryFilter = {
  destination?: string | undefined;
  /** At least one. */
  states?: readonly DeliveryStateFilter[] | undefined;
  submissionId?: string | undefined;
  eventId?: string | undefined;
  /** At least one. */
  eventTypes?: readonly string[] | undefined;
  /** Times of the event. */
  since?: number | undefined;
  until?: number | undefined;
};

/** Conditions of a replay in addition to its destination and start. */
export type ReplayConditions = Pick<DeliveryFilter, 'submissionId' | 'eventTypes' | 'until'>;

/**
 * newest: the last created delivery first. time: the latest event first. The orders differ for
 * events that were replayed late.
 */
export type DeliveryOrder = 'newest' | 'time';

/** Returns the order of a list. It depends only on which conditions there are. */
export function deliveryOrderOf({ since, until }: DeliveryFilter): DeliveryOrder {
  return since === undefined && until === undefined ? 'newest' : 'time';
}

/** Returns the walk that continues after a position. */
export function deliveryWalkOf(filter: DeliveryFilter, after: Position | null | undefined): Walk {
  const order = deliveryOrderOf(filter);
  const { match, parameters } = deliveryCondition(filter);
  const { until = LAST } = filter;
  const [p0 = null, p1 = null] = after ?? { newest: [LAST], time: [until, -1] }[order];
  const { keys, behind } = ORDERS[order];
  return {
    ranges: [`deliveries d ${indexOf(filter)} AND ${behind}`],
    id: 'd.id',
    keys,
    direction: 'DESC',
    match,
    parameters: { ...parameters, p0, p1 },
  };
}

/** Returns the index of the condition that usually matches the fewest deliveries. */
function indexOf(filter: DeliveryFilter): string {
  const { submissionId, eventId, destination, states } = filter;
  // An event has few deliveries, and a submission few events, so they can be sorted.
  if (submissionId !== undefined) return byEvent(EVENTS_OF_SUBMISSION);
  if (eventId !== undefined) return byEvent('SELECT seq FROM outbox WHERE id = @eventId');
  if (deliveryOrderOf(filter) === 'time')
    return 'INDEXED BY deliveries_created WHERE d.created_at >= +@since';
  if (states?.length === 1 && states[0] === 'dead')
    return "INDEXED BY deliveries_dead_by_id WHERE d.state = 'dead'";
  if (states?.length === 1 && states[0] === 'failing')
    return `INDEXED BY deliveries_failing WHERE ${FAILING}`;
  // The deliveries of callbacks are indexed by origin.
  if (destination !== undefined && destination !== CALLBACKS)
    return 'INDEXED BY deliveries_by_destination WHERE d.destination = +@destination';
  return 'NOT INDEXED WHERE 1';
}

const byEvent = (events: string) => `INDEXED BY deliveries_by_event WHERE d.event IN (${events})`;

/** Returns a SQL condition for the row `d` of deliveries, and its parameters. */
export function deliveryCondition(filter: DeliveryFilter): {
  match: string;
  parameters: Record<string, unknown>;
} {
  const {
    destination = null,
    states,
    submissionId,
    eventId = null,
    eventTypes,
    since = FIRST,
    until = LAST,
  } = filter;
  const parameters = {
    ...{ destination, eventId, since, until },
    submissionId: submissionId === undefined ? null : canonicalId(submissionId),
    states: states ? JSON.stringify(states) : null,
    eventTypes: eventTypes ? JSON.stringify(eventTypes) : null,
  };
  return { match: matchOf(destination), parameters };
}

const CALLBACKS = webhookDestination(CALLBACKS_ID);

/** SQL condition. The webhook of the callbacks matches the callbacks to all origins. */
export function matches(destination: string): string {
  return destination === CALLBACKS
    ? "destination BETWEEN 'callback:' AND 'callback:\x7f'"
    : 'destination = @destination';
}

const [FIRST, LAST] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];

const FAILING = "d.state = 'waiting' AND d.attempts > 0";

const EVENTS_OF_SUBMISSION = `SELECT seq FROM outbox WHERE submission IN
  (SELECT id FROM submissions WHERE submission_id = @submissionId)`;

/** The type of the event is looked up last, because that is the most expensive condition. */
const matchOf = (destination: string | null) => `
  CASE WHEN (@states IS NULL OR d.state IN (SELECT value FROM json_each(@states))
      OR ('failing' IN (SELECT value FROM json_each(@states)) AND ${FAILING}))
    AND d.created_at >= @since AND d.created_at < @until
    AND (@submissionId IS NULL OR d.event IN (${EVENTS_OF_SUBMISSION}))
    AND (@eventId IS NULL OR d.event = (SELECT seq FROM outbox WHERE id = @eventId))
    ${destination === null ? '' : `AND d.${matches(destination)}`}
  THEN @eventTypes IS NULL
    OR (SELECT type FROM outbox WHERE seq = d.event) IN (SELECT value FROM json_each(@eventTypes))
  END`;

/** Sort keys, and the condition for the rows behind a position. */
const ORDERS: Record<DeliveryOrder, { keys: string[]; behind: string }> = {
  newest: { keys: ['d.id'], behind: 'd.id < +@p0' },
  time: { keys: ['d.created_at', 'd.id'], behind: '(d.created_at, d.id) < (+@p0, +@p1)' },
};
