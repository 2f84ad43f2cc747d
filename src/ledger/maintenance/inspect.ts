import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Webhook } from '../../domain/notifications/webhook.ts';
import { CredentialStore } from '../access/credentials.ts';
import { Webhooks } from '../deliveries/webhooks.ts';
import { FanOut } from '../events/fan-out.ts';
import { guarded, LedgerError, type LedgerProblem } from '../file/errors.ts';
import { LedgerDatabase } from '../file/ledger-database.ts';
import { assertOwnSchema, schemaOf } from '../file/migrations.ts';
import { realPath } from '../file/open.ts';

/** What a ledger says of itself to somebody who is not its server. */
export type LedgerInspection =
  | { kind: 'missing' }
  | { kind: 'refused'; problem: LedgerProblem | undefined; message: string }
  /** Of an older version, or empty: then `found` is 0. */
  | { kind: 'older'; found: number; needed: number }
  | {
      kind: 'current';
      schema: number;
      hasCredential: boolean;
      /** Newest first, `MAX_WEBHOOKS` at most. */
      webhooks: Webhook[];
      /** By destination. */
      deadLetters: ReadonlyMap<string, number>;
    };

const BUSY_MS = 2_000;
const MAX_WEBHOOKS = 1_000;

/**
 * Never throws. Reads, and neither makes, migrates nor changes anything. Where no server has the ledger, SQLite leaves its two empty
 * side files there, which the next server takes.
 */
export function inspectLedger(file: string, now: number): LedgerInspection {
  const path = realPath(file);
  if (!existsSync(path)) return { kind: 'missing' };
  try {
    return guarded(file, () => {
      const db = new Database(path, { readonly: true, fileMustExist: true, timeout: BUSY_MS });
      try {
        assertOwnSchema(db, file);
        const { found, needed } = schemaOf(db);
        return found === needed ? look(db, { file, schema: found, now }) : { kind: 'older', found, needed };
      } finally {
        db.close();
      }
    });
  } catch (error) {
    const problem = error instanceof LedgerError ? error.problem : undefined;
    return { kind: 'refused', problem, message: error instanceof Error ? error.message : String(error) };
  }
}

function look(
  db: Database.Database,
  { file, schema, now }: { file: string; schema: number; now: number },
): LedgerInspection {
  const transactions = new LedgerDatabase(db, file);
  const dead = db
    .prepare(
      `-- Dead letters, by where they should have gone.
      SELECT destination, count(*) AS count FROM deliveries WHERE state = 'dead' GROUP BY destination`,
    )
    .all() as { destination: string; count: number }[];
  return {
    kind: 'current',
    schema,
    hasCredential: new CredentialStore(db, file).isAnyValid(),
    webhooks: new Webhooks(transactions, new FanOut(transactions)).list({ limit: MAX_WEBHOOKS, now }).webhooks,
    deadLetters: new Map(dead.map(({ destination, count }) => [destination, count])),
  };
}
