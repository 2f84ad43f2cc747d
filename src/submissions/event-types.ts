export const SubmissionEventType = {
  finalized: 'submission.finalized',
  failing: 'submission.failing',
  recovered: 'submission.recovered',
  failed: 'submission.failed',
  unknown: 'submission.unknown',
  rejected: 'submission.rejected',
  expired: 'submission.expired',
  cancelled: 'submission.cancelled',
  retracked: 'submission.retracked',
  stuck: 'submission.stuck',
  corrected: 'submission.corrected',
  contradicted: 'submission.contradicted',
} as const;
export type SubmissionEventType = (typeof SubmissionEventType)[keyof typeof SubmissionEventType];

export const UpstreamEventType = {
  down: 'upstream.down',
  up: 'upstream.up',
  unauthorized: 'upstream.unauthorized',
} as const;
export type UpstreamEventType = (typeof UpstreamEventType)[keyof typeof UpstreamEventType];

/** Events for operators: a condition starts, still holds, has ended. */
export const AlertEventType = {
  raised: 'alert.raised',
  resolved: 'alert.resolved',
} as const;
export type AlertEventType = (typeof AlertEventType)[keyof typeof AlertEventType];

/** Sent on request to one destination, to test it. */
export const TestEventType = {
  webhook: 'webhook.test',
  channel: 'channel.test',
} as const;
export type TestEventType = (typeof TestEventType)[keyof typeof TestEventType];

export const EVENT_TYPES = [
  ...Object.values(SubmissionEventType),
  ...Object.values(UpstreamEventType),
  ...Object.values(AlertEventType),
  ...Object.values(TestEventType),
];
