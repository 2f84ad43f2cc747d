import { z } from 'zod';
import type { Position, Walk } from '../ledger/page.ts';
import { isObject } from '../lib/json.ts';
import { EVENT_TYPES } from '../submissions/event-types.ts';
import { canonicalId } from '../submissions/submission.ts';
import type { DamagedEvent, EventRecord } from './event-body.ts';

/** Selects events by type and, if there is a filter, by metadata. */
export type Subscription = {
  types: readonly string[];
  /** All must be in the metadata with equal values. Events without metadata do not match. */
  metadata: Record<string, unknown> | null;
};

const WILDCARDS = ['*', ...new Set(EVENT_TYPES.map((type) => `${type.split('.')[0]}.*`))];
const ALL_TYPES: ReadonlySet<string> = new Set([...EVENT_TYPES, ...WILDCARDS]);

export const eventTypeSchema = z.string().superRefine((type, context) => {
  if (ALL_TYPES.has(type)) return;
  context.addIssue({
    code: 'custom',
    message: `${JSON.stringify(type.slice(0, 60))} is not an event type; valid are ${WILDCARDS.join(', ')} and the types they cover`,
  });
});

export const MAX_TYPES = 50;
const MAX_FILTER_KEYS = 16;
const MAX_FILTER_BYTES = 2_048;

export const metadataFilterSchema = z
  .record(
    z.string().min(1).max(200),
    z.union([z.string(), z.number(), z.boolean(), z.null()], {
      error: 'must be a string, a number, true, false or null',
    }),
    {
      error: 'must be an object whose values are strings, numbers, booleans or null',
    },
  )
  .refine((filter) => Object.keys(filter).length > 0, 'a filter requires at least one name')
  .refine(
    (filter) =>
      Object.keys(filter).length <= MAX_FILTER_KEYS &&
      Buffer.byteLength(JSON.stringify(filter)) <= MAX_FILTER_BYTES,
    `a filter has at most ${MAX_FILTER_KEYS} names and ${MAX_FILTER_BYTES} bytes of JSON`,
  )
  .describe(
    'Only events of submissions whose metadata contains all of these names with exactly these values',
  );

function typesCovered(types: readonly string[]): (typeof EVENT_TYPES)[number][] {
  return EVENT_TYPES.filter((name) => types.some((type) => covers(type, name)));
}

export function createMatcher({ types, metadata }: Subscription) {
  const wanted = new Set(typesCovered(types));
  const filter = metadata === null ? [] : Object.entries(metadata);
  return (event: { type: string; metadata: Record<string, unknown> | null }): boolean =>
    wanted.has(event.type as never) &&
    filter.every(
      ([name, value]) =>
        isObject(event.metadata) &&
        Object.hasOwn(event.metadata, name) &&
        event.metadata[name] === value,
    );
}

function covers(type: string, name: string): boolean {
  return (
    type === '*' || type === name || (type.endsWith('.*') && name.startsWith(type.slice(0, -1)))
  );
}

/** operator: by hand. gone: its receiver responded 410. failing: every attempt failed for days. */
export const DISABLED_REASONS = ['operator', 'gone', 'failing'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** Signs the events for `callback_url`s: always exists, without a URL of its own. */
export const CALLBACKS_ID = 'callbacks';

export const webhookIdSchema = z
  .string()
  .regex(/^(?:wh_[0-9a-f]{32}|callbacks)$/, 'must be the id of a webhook: wh_…')
  .describe(
    `Id of a webhook; \`${CALLBACKS_ID}\` is the one that sends to the callback_url of submissions`,
  )
  .meta({ examples: [CALLBACKS_ID] });

export const WEBHOOK_HEADERS = ['webhook-id', 'webhook-signature', 'webhook-timestamp'] as const;

/** Attempts in the current hour and the 24 hours before it. */
export type WebhookDay = {
  attempts: number;
  successRate: number;
  responseP95Ms: number | null;
};

export type Webhook = Subscription & {
  id: string;
  /** null for the callbacks, whose URLs come with the submissions. */
  url: string | null;
  description: string;
  /** Names of the further headers of its requests, whose values are secret. */
  headerNames: string[];
  enabled: boolean;
  disabledReason: DisabledReason | null;
  /** Since when every attempt has failed. */
  failingSince: number | null;
  lastDay: WebhookDay | null;
  createdAt: number;
  updatedAt: number;
};

export type NewWebhook = Subscription &
  Pick<Webhook, 'url' | 'description' | 'enabled'> & {
    headers?: Record<string, string>;
  };
export type WebhookPatch = Partial<NewWebhook>;

/** dead: can be replayed. discarded: its webhook was deleted. */
export const DELIVERY_STATES = ['waiting', 'delivered', 'dead', 'discarded'] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** The states by which a list is filtered. failing: waiting for a retry after a failed attempt. */
export const DELIVERY_FILTERS = [...DELIVERY_STATES, 'failing'] as const;
type DeliveryStateFilter = (typeof DELIVERY_FILTERS)[number];

/**
 * not_configured: its channel is not in the settings. undeliverable: damaged or not convertible.
 */
export const DEAD_REASONS = [
  'attempts_used_up',
  'endpoint_gone',
  'endpoint_disabled',
  'not_configured',
  'undeliverable',
] as const;
export type DeadReason = (typeof DEAD_REASONS)[number];
/** `callback:` without an origin stands for all callbacks. */
export type DeadLetters = { destination: string; reason: DeadReason; count: number };

export type Delivery = {
  id: number;
  eventId: string;
  eventType: string;
  submissionId: string | null;
  /** `webhook:<id>`, `channel:<name>` or `callback:<origin>`. Its deliveries share its pace. */
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
  error: string | null;
  response: string | null;
};

export type DueDelivery = {
  id: number;
  attempts: number;
  event: EventRecord | DamagedEvent;
  callbackUrl: string | null;
};

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

export function parseDestination(text: string): Destination {
  const [kind, rest] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  if (kind === 'webhook') return { kind, webhookId: rest };
  if (kind === 'channel') return { kind, name: rest };
  if (kind === 'callback') return { kind, origin: rest };
  return { kind: 'channel', name: text };
}

export type DeliveryFilter = {
  destination?: string | undefined;
  state?: DeliveryStateFilter | undefined;
  submissionId?: string | undefined;
};

export function deliveryWalkOf(filter: DeliveryFilter, after: Position | null | undefined): Walk {
  const { destination = null, state, submissionId } = filter;
  const conditions = [
    state && STATE_CONDITIONS[state],
    destination && `d.${matches(destination)}`,
    submissionId === undefined ? undefined : OF_SUBMISSION,
  ].filter(Boolean);
  return {
    ranges: [`deliveries d ${indexOf(filter)} AND d.id < +@p0`],
    id: 'd.id',
    keys: ['d.id'],
    direction: 'DESC',
    match: conditions.join(' AND ') || '1',
    parameters: {
      ...(destination !== null && { destination }),
      ...(submissionId !== undefined && { submissionId: canonicalId(submissionId) }),
      p0: after?.[0] ?? Number.MAX_SAFE_INTEGER,
    },
  };
}

/** Returns the index of the condition that usually matches the fewest deliveries. */
function indexOf({ submissionId, destination, state }: DeliveryFilter): string {
  // A submission has few deliveries, so they can be sorted.
  if (submissionId !== undefined) return `INDEXED BY deliveries_by_event WHERE ${OF_SUBMISSION}`;
  if (state === 'dead') return "INDEXED BY deliveries_dead_by_id WHERE d.state = 'dead'";
  if (state === 'failing') return `INDEXED BY deliveries_failing WHERE ${STATE_CONDITIONS.failing}`;
  // The deliveries of callbacks are indexed by origin.
  if (destination !== undefined && destination !== CALLBACKS)
    return 'INDEXED BY deliveries_by_destination WHERE d.destination = +@destination';
  return 'NOT INDEXED WHERE 1';
}

/** The destination that stands for the callbacks to all origins. */
export const CALLBACKS = webhookDestination(CALLBACKS_ID);

/** SQL condition. The webhook of the callbacks matches the callbacks to all origins. */
export function matches(destination: string): string {
  return destination === CALLBACKS
    ? "destination BETWEEN 'callback:' AND 'callback:\x7f'"
    : 'destination = @destination';
}

const STATE_CONDITIONS: Record<DeliveryStateFilter, string> = {
  waiting: "d.state = 'waiting'",
  failing: "d.state = 'waiting' AND d.attempts > 0",
  delivered: "d.state = 'delivered'",
  dead: "d.state = 'dead'",
  discarded: "d.state = 'discarded'",
};

const OF_SUBMISSION = `d.event IN (SELECT seq FROM outbox WHERE submission IN
  (SELECT id FROM submissions WHERE submission_id = @submissionId))`;
