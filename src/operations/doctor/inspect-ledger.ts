import { existsSync } from 'node:fs';
import Database from 'better-sqlite3';
import { CredentialStore } from '../../access/credentials-store.ts';
import { guarded, LedgerError, type LedgerProblem } from '../../ledger/errors.ts';
import { CommittedChanges, LedgerDatabase } from '../../ledger/ledger-database.ts';
import { realPath, syncLog } from '../../ledger/open.ts';
import { assertOwnSchema, schemaOf } from '../../ledger/schema.ts';
import { EventRoutes } from '../../notifications/event-routes.ts';
import type { Webhook } from '../../notifications/webhook.ts';
import { Webhooks } from '../../notifications/webhooks-store.ts';

/** The state of a ledger as another process sees it. */
export type LedgerInspection =
  | { kind: 'missing' }
  | { kind: 'refused'; problem: LedgerProblem | undefined; message: string }
  /** The schema is of an older version; `found` is 0 for an empty file. */
  | { kind: 'older'; found: number; needed: number }
  | {
      kind: 'current';
      schema: number;
      hasCredential: boolean;
      /** Newest first, at most `MAX_WEBHOOKS`. */
      webhooks: Webhook[];
      /** Number by destination. */
      deadLetters: ReadonlyMap<string, number>;
    };

const BUSY_MS = 2_000;
const MAX_WEBHOOKS = 1_000;

/**
 * Reads the state of a ledger, with or without a server. Never throws, and never creates, migrates
 * or changes a ledger. Without a server, SQLite leaves its two empty side files, which the next
 * server reuses.
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
        if (found !== needed) return { kind: 'older', found, needed };
        const inspection = inspectCurrent(new LedgerDatabase(db, file), found, now);
        syncLog(db);
        return inspection;
      } finally {
        db.close();
      }
    });
  } catch (error) {
    const problem = error instanceof LedgerError ? error.problem : undefined;
    return {
      kind: 'refused',
      problem,
      message: error instanceof Error ? error.message : String(error),
    };
  }
}

function inspectCurrent(database: LedgerDatabase, schema: number, now: number): LedgerInspection {
  const deadLetters = database.rows<{ destination: string; count: number }>(
    "SELECT destination, count(*) AS count FROM deliveries WHERE state = 'dead' GROUP BY destination",
  );
  const webhooks = new Webhooks(database, {
    routes: new EventRoutes(database),
    dead: new CommittedChanges(database),
  });
  return {
    kind: 'current',
    schema,
    hasCredential: new CredentialStore(database).isAnyKept(),
    webhooks: webhooks.list({ limit: MAX_WEBHOOKS, now }).webhooks,
    deadLetters: new Map(deadLetters.map(({ destination, count }) => [destination, count])),
  };
}
