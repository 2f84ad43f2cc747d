/**
 * The package `@dawatch/client`: needs only what Node 20.3, Bun and browsers have in common.
 * `@dawatch/client/webhook` needs Node's crypto.
 */

export type {
  Credential,
  CredentialPage,
  CredentialPatch,
  CredentialWithSecret,
  NewCredential,
  Role,
  Scope,
} from './access/credentials.ts';
export { DawatchClient, type DawatchClientOptions } from './client.ts';
export type {
  Delivery,
  DeliveryAttempt,
  DeliveryDetails,
  DeliveryPage,
  DeliveryQuery,
  ReplayRequest,
} from './deliveries.ts';
export { ApiError, ConnectionError } from './errors.ts';
export type { EventOptions, FeedEvent } from './events.ts';
export type {
  Alert,
  AlertPage,
  AlertQuery,
  Mute,
  MutePage,
  NewMute,
} from './notifications/alerts.ts';
export type { Channel } from './notifications/channels.ts';
export type {
  AlertEvent,
  DawatchEvent,
  EventSubmission,
  FeedGap,
  SubmissionEvent,
  UpstreamEvent,
} from './notifications/event-shapes.ts';
export type { ChannelTestEvent, TestEvent } from './notifications/test-events.ts';
export type {
  Distribution,
  Overview,
  Report,
  ReportPercentiles,
  ReportQuery,
  ReportSums,
} from './overview.ts';
export type { SubmissionQuery } from './request.ts';
export {
  type AuditEntry,
  type AuditPage,
  type AuditQuery,
  type AuditVerification,
  type FoundSubmissions,
  type HistoryEntry,
  isFinal,
  type MetadataFilter,
  type OptionChanges,
  type PollingCost,
  type Submission,
  type SubmissionFilter,
  type SubmissionIfChanged,
  type SubmissionPage,
  type SubmissionPatch,
  type SubmissionStatus,
  type SubmissionWithHistory,
  type Tracked,
  type TrackItem,
  type TrackOptionName,
  type TrackOptions,
  type UpstreamPacing,
  type User,
} from './shapes.ts';
export type {
  NewWebhook,
  Webhook,
  WebhookPage,
  WebhookPatch,
  WebhookWithSecret,
} from './webhooks.ts';
