/**
 * The package `@dawatch/client`: needs only what Node 20.19, Bun and browsers have in common.
 * `@dawatch/client/webhook` needs Node's crypto.
 */

export type {
  Alert,
  AlertEvent,
  AlertPage,
  AuditEntry,
  AuditPage,
  Channel,
  ChannelTestEvent,
  Credential,
  CredentialPage,
  CredentialWithSecret,
  Delivery,
  DeliveryAttempt,
  DeliveryDetails,
  DeliveryPage,
  EventSubmission,
  HistoryEntry,
  ListAlertsQuery as AlertQuery,
  Mute,
  MuteList,
  NewCredential,
  NewMute,
  NewWebhook,
  OptionChanges,
  Overview,
  Pacing,
  Proof,
  ReplayRequest,
  Role,
  Spread as Distribution,
  Submission,
  SubmissionEvent,
  SubmissionPage,
  SubmissionPatch,
  SubmissionStatus,
  SubmissionWithHistory,
  TestEvent,
  TrackedSubmissions as Tracked,
  TrackItem,
  UpstreamEvent,
  UpstreamPacing,
  User,
  Webhook,
  WebhookDetails,
  WebhookPage,
  WebhookPatch,
  WebhookWithSecret,
} from './api.ts';
export { isFinal } from './backoff.ts';
export {
  DawatchClient,
  type DawatchClientOptions,
} from './client.ts';
export { ApiError, ConnectionError } from './errors.ts';
export {
  type DawatchEvent,
  type EventOptions,
  type FeedEvent,
  type FeedGap,
  isSubmissionEvent,
} from './events.ts';
export type {
  AuditQuery,
  DeliveryQuery,
  FoundSubmissions,
  MetadataFilter,
  SubmissionFilter,
  SubmissionQuery,
} from './request.ts';
export type { TrackOptions } from './track.ts';
