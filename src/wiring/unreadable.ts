import type { ReportUnreadable } from '../domain/stored.ts';
import { escapeText } from '../domain/text.ts';
import type { Counters } from '../http/metrics/counters.ts';
import type { Log } from '../logging/logger.ts';

/** Beyond it all are reported anew: a ledger with so many is to be restored from a backup. */
const MAX_REMEMBERED = 10_000;

/** Logs and counts every unreadable row once, however often it is read. */
export function reportUnreadable({ log, counters }: { log: Log; counters: Counters }): ReportUnreadable {
  const reported = new Set<string>();
  return ({ kind, id, fields }) => {
    const row = `${kind} ${id}`;
    if (reported.has(row)) return;
    if (reported.size >= MAX_REMEMBERED) reported.clear();
    reported.add(row);
    counters.rowUnreadable(kind);
    log.error({ row: kind, row_id: escapeText(id), unreadable: fields.join(', ') }, 'ledger.row_unreadable');
  };
}
