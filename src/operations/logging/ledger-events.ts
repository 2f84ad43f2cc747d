import { error, info, type LogEvent, warn } from './fields.ts';

const CHECK_DISK = 'free disk space, or find the process that locks the file';

/** The ledger and its maintenance. */
export const LEDGER_EVENTS = {
  'ledger.write_failed': error(
    'observations could not be written, or open submissions could not be read at startup. The operation is retried',
    ['err'],
    CHECK_DISK,
  ),
  'ledger.permissions_tightened': warn(
    'the server starts and other users could read or write files of the ledger. Their access was removed',
    ['files'],
    'rotate the webhook secrets if another user may have read them',
  ),
  'ledger.continued': warn(
    'the server starts with a copy of a ledger that another server served before: a restored replica or backup. It continues the ledger as the next generation',
    ['generation'],
    'make sure that the other server never runs again: `docs/failover.md`',
  ),
  'ledger.pruned': info('expired rows were deleted (`retention`, `deliveries.keep_s`)', [
    'submissions',
    'events',
    'deliveries',
  ]),
  'ledger.sync_failed': error(
    'the disk failed to sync committed data. The server exits with 5; data that was not acknowledged may be lost. The next start copies the ledger',
    ['err'],
    'check the system log for disk errors, replace the disk, and start the server',
  ),
  'ledger.recovering': warn(
    'the server starts after a failed sync: it copies the ledger to a new file, verifies it, and replaces the ledger by it',
    [],
    'check the system log for disk errors',
  ),
  'ledger.maintenance_failed': error(
    'the ledger could not be pruned or shrunk, or its write-ahead log could not be shortened. The operation is retried',
    ['err'],
    CHECK_DISK,
  ),
} as const satisfies Record<string, LogEvent>;
