/** What is told to others about a submission. */
export const SubmissionEventType = {
  finalized: 'submission.finalized',
  failing: 'submission.failing',
  recovered: 'submission.recovered',
  failed: 'submission.failed',
  unknown: 'submission.unknown',
  rejected: 'submission.rejected',
  expired: 'submission.expired',
  cancelled: 'submission.cancelled',
  stuck: 'submission.stuck',
  corrected: 'submission.corrected',
} as const;
export type SubmissionEventType = (typeof SubmissionEventType)[keyof typeof SubmissionEventType];

/** What is told to others about an upstream. */
export const UpstreamEventType = {
  down: 'upstream.down',
  up: 'upstream.up',
  unauthorized: 'upstream.unauthorized',
} as const;
export type UpstreamEventType = (typeof UpstreamEventType)[keyof typeof UpstreamEventType];
