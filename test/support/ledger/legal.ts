import type { Status } from '../../../src/submissions/submission.ts';

/** The legal status transitions, written independently of src/domain. */
export const LEGAL: Record<Status, readonly Status[]> = {
  tracking: [
    'pending',
    'failing',
    'finalized',
    'failed',
    'unknown',
    'rejected',
    'expired',
    'cancelled',
  ],
  pending: ['pending', 'failing', 'finalized', 'failed', 'expired', 'cancelled'],
  failing: ['failing', 'pending', 'finalized', 'failed', 'expired', 'cancelled'],
  finalized: ['finalized'],
  failed: [],
  unknown: [],
  rejected: [],
  expired: [],
  cancelled: [],
};
