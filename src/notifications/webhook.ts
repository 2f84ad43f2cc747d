import { z } from 'zod';
import { isObject } from '../lib/json.ts';
import { EVENT_TYPES } from '../submissions/event-types.ts';

/** Selects events by type and, if there is a filter, by metadata. */
export type Subscription = {
  types: readonly string[];
  /**
   * All of these must be in the submission's metadata with equal values. Events without metadata do
   * not match.
   */
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

/** Returns a function that tests events; created once per subscription. */
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

/**
 * The webhook that signs the events for `callback_url`s: it always exists and has no URL of its
 * own.
 */
export const CALLBACKS_ID = 'callbacks';

export const webhookIdSchema = z
  .string()
  .regex(/^(?:wh_[0-9a-f]{32}|callbacks)$/, 'must be the id of a webhook: wh_…')
  .describe(
    `Id of a webhook; \`${CALLBACKS_ID}\` is the one that sends to the callback_url of submissions`,
  )
  .meta({ examples: [CALLBACKS_ID] });

/** Headers that requests to webhooks have, in addition to those of every request. */
export const WEBHOOK_HEADERS = ['webhook-id', 'webhook-signature', 'webhook-timestamp'] as const;

/** Attempts in the current hour and the 24 hours before it. */
export type WebhookDay = {
  attempts: number;
  successRate: number;
  responseP95Ms: number | null;
};

/** A webhook endpoint. Times are epoch milliseconds. */
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
