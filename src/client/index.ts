/** The package `dawatch/client`. Requires Node 20 or newer and has no dependencies. */
export { DawatchClient, type DawatchClientOptions } from './client.ts';
export type { Delivery, DeliveryAttempt, DeliveryDetails, DeliveryPage, DeliveryQuery } from './deliveries.ts';
export { ApiError, ConnectionError } from './errors.ts';
export type { EventOptions, FeedEvent } from './events.ts';
export type { Distribution, Overview } from './overview.ts';
export {
  type AlertEvent,
  type AuditEntry,
  type DawatchEvent,
  type EventSubmission,
  type FeedGap,
  type HistoryEntry,
  isFinal,
  type PollingCost,
  type Submission,
  type SubmissionEvent,
  type SubmissionPage,
  type SubmissionStatus,
  type SubmissionWithHistory,
  type TestEvent,
  type Tracked,
  type TrackOptions,
  type UpstreamEvent,
  type UpstreamPacing,
  type User,
} from './shapes.ts';
export { verifyWebhook, type WebhookProblem, type WebhookRequest, WebhookVerificationError } from './webhook.ts';
export type { MetadataFilter, NewWebhook, Webhook, WebhookPage, WebhookPatch, WebhookWithSecret } from './webhooks.ts';
