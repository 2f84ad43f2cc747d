import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { canonicalId } from '../../../src/domain/submission.ts';
import { checkAudit } from '../../../src/ledger/access/audit-check.ts';
import { LedgerError } from '../../../src/ledger/file/errors.ts';
import { MIGRATIONS } from '../../../src/ledger/file/migrations.ts';
import { openBeside } from '../../../src/ledger/file/open.ts';
import { call } from '../../support/app/http-calls.ts';
import { openApp } from '../../support/app/running-app.ts';
import { historyOf } from '../../support/ledger/histories.ts';
import { allSubmissions, integrityOf, openLedger, rawConnection } from '../../support/ledger/ledger-file.ts';
import { tempFolder } from '../../support/temp-folder.ts';

/**
 * Ledgers written by earlier code, as SQL: by the commits 28e0b3c (schema 1), 8ffa888 (2), 66c2809 (4) and e9d906b (8), which
 * completed these schemas. Each was created with the server and the sandbox of its commit: `dawatch sandbox --speed 40`,
 * `dawatch serve`, nine or ten submissions over HTTP (finalized, open, rejected, cancelled, UUIDs in upper case, one of them in
 * two cases), `dawatch token create`, a lookup of a user, and from schema 2 on a callback and webhooks that succeed, fail and are
 * disabled. After SIGTERM, `sqlite3 .dump` wrote the file; three pragmas, which it omits, are in front. A ledger of a schema
 * without a dump is an upgrade that was killed between two migrations. `npm run release` requires a dump of the newest schema.
 */
const EARLIER = join(import.meta.dirname, 'earlier');
const DUMPS = readdirSync(EARLIER).map((name) => Number(/^schema-(\d+)\.sql$/.exec(name)?.[1]));
const SCHEMAS = MIGRATIONS.map((_, index) => index + 1);

/** Restores the newest dump up to `schema`, and runs the migrations from there up to `schema`. */
function restoreEarlier(schema: number): string {
  const file = join(tempFolder(), 'dawatch.db');
  const dump = Math.max(...DUMPS.filter((version) => version <= schema));
  const db = new Database(file);
  db.exec(readFileSync(join(EARLIER, `schema-${dump}.sql`), 'utf8'));
  for (const sql of MIGRATIONS.slice(dump, schema)) db.exec(sql);
  db.pragma(`user_version = ${schema}`);
  db.close();
  return file;
}

/** Reads the content with SQL that every schema understands. Tables that a schema lacks are empty. */
function contentOf(file: string) {
  const db = rawConnection(file);
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  const rows = <Row>(table: string, columns: string, order = 'id') =>
    tables.includes(table.split(' ')[0])
      ? (db.prepare(`SELECT ${columns} FROM ${table} ORDER BY ${order}`).all() as Row[])
      : [];
  const content = {
    submissions: rows<{ id: number; submissionId: string; status: string; metadata: string | null }>(
      'submissions',
      `id, submission_id AS submissionId, upstream, status, version, polls, tracked_at AS trackedAt,
       finalized_at AS finalizedAt, deadline_at AS deadlineAt, polled_at AS polledAt, metadata`,
    ),
    history: rows<{ submission: number }>(
      'history',
      `submission, seq, version, at, status, previous_status AS previousStatus, upstream_state AS upstreamState, error,
       answer AS envelope`,
      'seq',
    ),
    events: rows('outbox', 'seq, id, type, at', 'seq'),
    deliveries: rows<{ id: number }>(
      'deliveries',
      'id, destination, state, attempts, next_at AS nextAt, created_at AS createdAt, ended_at AS endedAt',
      'id DESC',
    ),
    attempts: rows<{ delivery: number }>(
      'attempts',
      'delivery, at, duration_ms AS durationMs, http_status AS httpStatus, error, response',
    ),
    webhooks: rows<{ rowid: number; id: string; url: string | null; description: string; enabled: number }>(
      'webhooks',
      'id AS rowid, webhook_id AS id, url, description, enabled',
    ),
    secrets: rows<{ webhook: number; secret: string }>('webhook_secrets', 'webhook, secret'),
    credentials: rows<{ hash: Buffer }>('credentials', 'id, hash, role, name, created_at AS createdAt'),
    audit: rows(
      tables.includes('audit_persons') ? 'audit LEFT JOIN audit_persons USING (seq)' : 'audit',
      'seq, at, caller, action, outcome AS result, email_masked AS emailMasked',
      'seq DESC',
    ),
  };
  db.close();
  return content;
}

/** Returns the submissions and their histories as the ledger shows them. One of two spellings of a UUID keeps its upper case. */
function shownSubmissions({ submissions, history }: ReturnType<typeof contentOf>) {
  const stored = new Set(submissions.map(({ submissionId }) => submissionId));
  return submissions.map(({ id, ...submission }) => {
    const lower = canonicalId(submission.submissionId);
    return {
      ...submission,
      submissionId: stored.has(lower) ? submission.submissionId : lower,
      metadata: submission.metadata && JSON.parse(submission.metadata),
      history: history.filter((entry) => entry.submission === id).map(({ submission: _, ...entry }) => entry),
    };
  });
}

/** Returns the definitions of tables, indexes and triggers without their comments, white space and quotes. */
function definitionsOf(file: string): string[] {
  const sql = rawConnection(file)
    .prepare('SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL')
    .pluck()
    .all() as string[];
  return sql.map((text) => text.replace(/--.*$/gm, '').replace(/[\s"]+/g, '')).toSorted();
}

describe.each(SCHEMAS)('a ledger of schema %i', (schema) => {
  it('is migrated with its submissions and their histories', () => {
    const file = restoreEarlier(schema);
    const expected = shownSubmissions(contentOf(file));
    expect(expected.length).toBeGreaterThan(8);
    const ledger = openLedger({ file });
    const all = allSubmissions(ledger).toReversed();
    expect(all).toMatchObject(expected.map(({ history: _, ...submission }) => submission));
    expect(all.filter(({ unreadable }) => unreadable)).toEqual([]);
    for (const { submissionId, history } of expected)
      expect(historyOf(ledger, submissionId)).toEqual(history.map((entry) => ({ ...entry, changes: null })));
    const { watched } = ledger.listWatched('default', { after: 0, limit: 100 });
    expect(watched).toHaveLength(expected.filter(({ status }) => /^(?:tracking|pending)$/.test(status)).length);
  });

  it('is migrated with its events, deliveries, attempts and webhooks', () => {
    const file = restoreEarlier(schema);
    const { events, deliveries, attempts, webhooks, secrets } = contentOf(file);
    expect(events.length).toBeGreaterThan(5);
    expect(deliveries.length > 5 && webhooks.length === 4 && attempts.length > 5).toBe(schema >= 2);
    const ledger = openLedger({ file });
    const read = ledger.events.after(0, 100);
    expect(read).toMatchObject(events);
    expect(read.filter((event) => 'unreadable' in event)).toEqual([]);
    expect(ledger.deliveries.list({ limit: 100 }).deliveries).toMatchObject(deliveries);
    for (const { id } of deliveries) {
      const expected = attempts.filter(({ delivery }) => delivery === id).map(({ delivery: _, ...attempt }) => attempt);
      expect(ledger.deliveries.get(id)?.attempts).toEqual(expected);
    }
    for (const { rowid, id, enabled, ...webhook } of webhooks) {
      expect(ledger.webhooks.get(id, 0)).toMatchObject({ id, ...webhook, enabled: enabled === 1 });
      // A disabled webhook has no endpoint.
      if (enabled === 0) ledger.webhooks.update(id, { enabled: true }, 0);
      const expected = secrets.filter((row) => row.webhook === rowid).map(({ secret }) => secret);
      expect(ledger.webhooks.endpoint(id, 0)).toEqual({ url: webhook.url, secrets: expected });
    }
  });

  it('is migrated with its tokens and its audit, which is chained', async () => {
    const file = restoreEarlier(schema);
    const { credentials, audit } = contentOf(file);
    expect([credentials.length, audit.length]).toEqual([1, 1]);
    const ledger = openLedger({ file });
    for (const { hash, ...credential } of credentials)
      expect(ledger.credentials.find(hash, 0)).toMatchObject(credential);
    const { entries } = ledger.audit.list({ limit: 100 });
    expect(entries).toMatchObject(audit);
    expect(await checkAudit(file)).toEqual({ kind: 'intact', entries: 1, head: entries[0]?.hash, erasedPersons: 0 });
  });

  it('gets the tables, indexes and triggers of a new ledger', () => {
    const file = restoreEarlier(schema);
    openLedger({ file }).close();
    expect(integrityOf(file)).toBe('ok');
    expect(definitionsOf(file)).toEqual(definitionsOf(openLedger().file));
  });

  it('is served, and takes new submissions', async () => {
    const file = restoreEarlier(schema);
    const expected = shownSubmissions(contentOf(file));
    const app = await openApp({ database: file });
    onTestFinished(() => app.close());
    for (const { submissionId, status, history } of expected) {
      const { text } = await call(app.url, `/v1/submissions/${submissionId}`);
      expect(JSON.parse(text)).toMatchObject({ submission_id: submissionId, status });
      expect(JSON.parse(text).history).toHaveLength(history.length);
    }
    const tracked = await call(app.url, '/v1/submissions', { method: 'POST', body: { submission_id: 'later' } });
    expect(tracked.status).toBe(202);
  });
});

it.each([
  ['a server', (file: string) => openApp({ database: file })],
  ['a command', async (file: string) => openBeside({ file, now: 0 })],
])('%s refuses a ledger of a newer schema and leaves it unchanged', async (_name, open) => {
  const file = restoreEarlier(SCHEMAS.length);
  const db = rawConnection(file);
  db.exec('CREATE TABLE of_a_newer_version (id INTEGER)');
  db.pragma(`user_version = ${SCHEMAS.length + 1}`);
  db.close();
  const before = readFileSync(file);
  const error = await open(file).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(LedgerError);
  expect(String(error)).toContain(
    `was written by a newer dawatch (schema ${SCHEMAS.length + 1}, this version supports ${SCHEMAS.length}): upgrade dawatch`,
  );
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(dirname(file)).filter((name) => !name.endsWith('.lock'))).toEqual(['dawatch.db']);
});
