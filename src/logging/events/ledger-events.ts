import type { LogEvent } from './fields.ts';

const CHECK_DISK = 'free disk space, or find the process that locks the file';

/** The ledger and its maintenance. */
export const LEDGER_EVENTS = {
  'ledger.write_failed': {
    levels: ['error'],
    when: 'observations could not be written, or open submissions could not be read at startup. The operation is retried',
    fields: ['err'],
    advice: CHECK_DISK,
  },
  'ledger.permissions_tightened': {
    levels: ['warn'],
    when: 'the server starts and other users could read or write files of the ledger. Their access was removed',
    fields: ['files'],
    advice: 'rotate the webhook secrets if another user may have read them',
  },
  'ledger.row_unreadable': {
    levels: ['error'],
    when: 'a row contains a value that cannot be read: invalid or too deeply nested JSON, an invalid time, an unknown keyword. Written once per row',
    fields: ['row', 'row_id', 'unreadable'],
    advice:
      'the row is shown with `unreadable`; an event becomes a gap in the feed and a dead letter. Run `dawatch doctor --full`, and restore a backup if the file is damaged',
  },
  'ledger.pruned': {
    levels: ['info'],
    when: 'expired rows were deleted (`retention`, `deliveries.keep_s`)',
    fields: ['submissions', 'events', 'deliveries'],
  },
  'ledger.maintenance_failed': {
    levels: ['error'],
    when: 'the ledger could not be pruned or shrunk, or its write-ahead log could not be truncated. The operation is retried',
    fields: ['err'],
    advice: CHECK_DISK,
  },
} as const satisfies Record<string, LogEvent>;
