import { z } from 'zod';
import { iso } from '../../lib/clock.ts';
import { hostUrl } from '../../operations/config/section-values.ts';
import type { EventRecord } from '../event-body.ts';
import { isOver, type Message } from '../message.ts';
import { type Channel, type ChannelType, type ChatOptions, createChatChannel } from './channel.ts';

type PagerDutyOptions = ChatOptions & { routingKey: string };

/** `url`: the server of the Events API v2. Each event is a message, because it has its incident. */
export function createPagerDutyChannel({ url, routingKey, ...options }: PagerDutyOptions): Channel {
  return createChatChannel({
    ...options,
    url: `${url.replace(/\/$/, '')}/v2/enqueue`,
    secrets: [routingKey],
    maxBatch: 1,
    toBody: (message, event) => ({ routing_key: routingKey, ...toPagerDutyEvent(message, event) }),
  });
}

/**
 * Warnings, critical events and tests trigger. All others resolve, such as one whose condition had
 * ended before it was sent; PagerDuty ignores that if nothing is open.
 */
function toPagerDutyEvent({ title, severity, lines, link }: Message, event: EventRecord) {
  const isProblem = severity === 'warning' || severity === 'critical';
  const isTest = 'channel' in event || 'webhookId' in event;
  return {
    event_action: isProblem || isTest ? 'trigger' : 'resolve',
    dedup_key: subjectOf(event),
    payload: {
      summary: title,
      severity: isProblem ? severity : 'info',
      source: 'dawatch',
      timestamp: iso(event.at),
      class: event.type,
      custom_details: Object.fromEntries(lines.map(({ label, value }) => [label ?? '', value])),
    },
    client: 'dawatch',
    ...(link !== null && { client_url: link }),
  };
}

/** The same for all events about a condition, at most 255 characters. */
function subjectOf(event: EventRecord): string {
  // It may be sent during the next outage, whose incident it must not resolve.
  if (isOver(event)) return event.id;
  if ('submission' in event) return `submission/${event.submission.submissionId}`;
  // The ids of two servers may be the same.
  if ('alert' in event) return `alert/${event.alert.id}/${event.alert.since}`;
  return 'upstream' in event ? `upstream/${event.upstream}` : event.id;
}

const settings = z.strictObject({
  type: z.literal('pagerduty'),
  routing_key: z
    .string()
    .regex(/^[\w-]{32}$/, 'must be an integration key of 32 characters')
    .describe('Integration key of an Events API v2 integration'),
  url: hostUrl('http', 'https')
    .default('https://events.pagerduty.com')
    .describe('Address of the Events API; in the EU https://events.eu.pagerduty.com'),
});

export const pagerduty: ChannelType<z.output<typeof settings>> = {
  type: 'pagerduty',
  settings,
  address: ({ url }) => url,
  create: ({ routing_key, ...options }, deps) =>
    createPagerDutyChannel({ ...options, routingKey: routing_key, ...deps }),
};
