import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { checkAudit } from '../../../src/ledger/access/audit-check.ts';
import { Ledger } from '../../../src/ledger/ledger.ts';
import { auditLedger } from '../../support/ledger/audit.ts';
import type { Acknowledgement } from './workload.ts';

/** Opens the ledger that a loss of power left, and throws if anything is wrong or lost. */
export async function auditLedgerImage(file: string, acknowledged: readonly Acknowledgement[]): Promise<void> {
  if (!existsSync(file)) {
    if (acknowledged.some(({ kind }) => kind !== 'backup')) throw new Error('there is no ledger');
    return;
  }
  new Ledger({ file, now: Date.now() }).close();
  auditLedger(
    file,
    acknowledged.flatMap((one) => (one.kind === 'tracked' ? [one.id] : [])),
  );
  const chain = await checkAudit(file);
  if (chain.kind !== 'intact') throw new Error(`the chain of the audit is ${chain.kind}`);
  const db = new Database(file, { readonly: true });
  try {
    const lost = acknowledged.filter((one) => isLost(db, one));
    if (lost.length > 0) throw new Error(`lost: ${JSON.stringify(lost.slice(0, 5))}`);
    const undelivered = db
      .prepare(`
        -- Deliveries whose event or webhook is gone.
        SELECT count(*) FROM deliveries d LEFT JOIN outbox o ON o.seq = d.event WHERE o.seq IS NULL`)
      .pluck()
      .get();
    if (undelivered !== 0) throw new Error(`${undelivered} deliveries have no event`);
  } finally {
    db.close();
  }
}

/** A backup is complete, or it does not exist. */
export function auditBackupImage(file: string, submissionIds: readonly string[]): void {
  if (existsSync(file)) auditLedger(file, submissionIds);
}

function isLost(db: Database.Database, one: Acknowledgement): boolean {
  const count = (sql: string, ...parameters: unknown[]) =>
    Number(
      db
        .prepare(sql)
        .pluck()
        .get(...parameters),
    ) > 0;
  switch (one.kind) {
    case 'tracked':
      // auditLedger has found it.
      return false;
    case 'status':
      return !count(
        'SELECT count(*) FROM submissions s JOIN history h ON h.submission = s.id WHERE s.submission_id = ? AND h.version = ? AND h.status = ?',
        ...[one.id, one.history, one.status],
      );
    case 'deadline':
      return !count(
        'SELECT count(*) FROM submissions WHERE submission_id = ? AND deadline_at = ?',
        ...[one.id, Date.parse(one.deadline)],
      );
    case 'event':
      return !count('SELECT count(*) FROM outbox WHERE id = ?', one.id);
    case 'webhook':
      return !count('SELECT count(*) FROM webhooks WHERE webhook_id = ?', one.id);
    case 'token':
      return !count('SELECT count(*) FROM credentials WHERE name = ?', one.id);
    case 'backup':
      return !existsSync(one.file);
    default:
      return one satisfies never;
  }
}
