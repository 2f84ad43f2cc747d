/** Statuses in the order of a submission's life: open ones, then final ones. */
export const OPEN_STATUSES = ['tracking', 'pending', 'failing'];
export const FINAL_STATUSES = ['finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled'];
export const STATUSES = [...OPEN_STATUSES, ...FINAL_STATUSES];
