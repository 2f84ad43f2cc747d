import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { auditLedger } from '../../support/ledger/audit.ts';
import { Ledger } from '../../support/ledger/ledger-file.ts';
import type { Acknowledgement } from './workload.ts';

/** Opens the ledger that a loss of power left, and throws if anything is wrong or lost. */
export function auditLedgerImage(file: string, acknowledged: readonly Acknowledgement[]): void {
  if (!existsSync(file)) {
    if (acknowledged.some(({ kind }) => kind !== 'backup')) throw new Error('there is no ledger');
    return;
  }
  new Ledger({ file, now: Date.now() }).close();
  auditWhole(
    file,
    acknowledged.flatMap((one) => (one.kind === 'tracked' ? [one.id] : [])),
  );
  const db = new Database(file, { readonly: true });
  try {
    const lost = lostIn(db, acknowledged);
    if (lost.length > 0) throw new Error(`lost: ${JSON.stringify(lost.slice(0, 5))}`);
  } finally {
    db.close();
  }
}

/** A backup is complete, or it does not exist. */
export function auditBackupImage(file: string, submissionIds: readonly string[]): void {
  if (existsSync(file)) auditWhole(file, submissionIds);
}

/**
 * Parts of what is written, and deleted, at once. The workload replays no delivery, deletes no
 * webhook, and its retention deletes events and deliveries only with their submission.
 */
const INCOMPLETE = {
  'ended submissions without the event of their end': `
    FROM submissions s WHERE s.ended_at IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM outbox o JOIN history h ON h.seq = o.history_seq
      WHERE o.submission = s.id AND h.submission = s.id AND h.version = s.version)`,
  'events without their delivery to the webhook of all events': `
    FROM outbox o JOIN webhooks w ON w.types = '["*"]' WHERE o.submission IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM deliveries d WHERE d.event = o.seq AND d.destination = 'webhook:' || w.webhook_id)`,
  'deliveries without their event or webhook': `
    FROM deliveries d LEFT JOIN outbox o ON o.seq = d.event LEFT JOIN webhooks w ON w.webhook_id = substr(d.destination, 9)
    WHERE o.seq IS NULL OR w.id IS NULL`,
  'deliveries without all their attempts': `
    FROM deliveries d WHERE d.attempts <> (SELECT count(*) FROM attempts a WHERE a.delivery = d.id)`,
};

/** Throws unless the ledger contains these submissions, and everything in it is complete. */
function auditWhole(file: string, submissionIds: readonly string[]): void {
  auditLedger(file, submissionIds, { isVerified: true });
  const db = new Database(file, { readonly: true });
  try {
    for (const [what, from] of Object.entries(INCOMPLETE)) {
      const count = db.prepare(`SELECT count(*) ${from}`).pluck().get();
      if (count !== 0) throw new Error(`${count} ${what}`);
    }
  } finally {
    db.close();
  }
}

/** Returns what is not in the ledger as it was acknowledged. */
function lostIn(
  db: Database.Database,
  acknowledged: readonly Acknowledgement[],
): Acknowledgement[] {
  const finds = (sql: string) => {
    const statement = db.prepare(sql).pluck();
    return (...parameters: unknown[]) => statement.get(...parameters) !== undefined;
  };
  const hasStatus = finds(`
    SELECT 1 FROM submissions s JOIN history h ON h.submission = s.id
    WHERE s.submission_id = ? AND h.version = ? AND h.status = ?`);
  const hasDeadline = finds(
    'SELECT 1 FROM submissions WHERE submission_id = ? AND deadline_at = ?',
  );
  // With the attempt that delivered it.
  const hasDelivered = finds(`
    SELECT 1 FROM deliveries d JOIN attempts a ON a.delivery = d.id AND a.error IS NULL AND a.at + a.duration_ms = d.ended_at
    WHERE d.id = ? AND d.state = 'delivered' AND d.attempts = ? AND d.ended_at = ?`);
  const hasEvent = finds('SELECT 1 FROM outbox WHERE id = ?');
  const hasWebhook = finds('SELECT 1 FROM webhooks WHERE webhook_id = ?');
  const hasToken = finds('SELECT 1 FROM credentials WHERE name = ?');
  const isKept = (one: Acknowledgement): boolean => {
    switch (one.kind) {
      case 'tracked':
        // auditLedger has found it.
        return true;
      case 'status':
        return hasStatus(one.id, one.history, one.status);
      case 'deadline':
        return hasDeadline(one.id, Date.parse(one.deadline));
      case 'delivery':
        return hasDelivered(one.id, one.attempts, Date.parse(one.endedAt));
      case 'event':
        return hasEvent(one.id);
      case 'webhook':
        return hasWebhook(one.id);
      case 'token':
        return hasToken(one.id);
      case 'backup':
        return existsSync(one.file);
      default:
        return one satisfies never;
    }
  };
  return acknowledged.filter((one) => !isKept(one));
}
