import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AlertCondition } from '../../../src/domain/notifications/alert.ts';
import { APPLICATION_ID } from '../../../src/ledger/file/schema.ts';
import { context, observation } from '../../support/ledger/domain.ts';
import {
  integrityOf,
  openLedger,
  rawConnection,
  trackRequest,
  trackRequests,
} from '../../support/ledger/ledger-file.ts';
import { revertTo } from '../../support/ledger/revert-schema.ts';
import { tempFolder } from '../../support/temp-folder.ts';

it('an alert that was sent before schema 13 is neither lost nor sent again', () => {
  const ledger = openLedger();
  ledger.close();
  const db = rawConnection(ledger.file);
  revertTo(db, 12);
  db.exec("INSERT INTO alerts VALUES ('stuck', 'default', '1 is stuck', 1, 10, 20)");
  db.close();
  const migrated = openLedger({ file: ledger.file });
  const check = (conditions: AlertCondition[], now: number) =>
    migrated.alerts.reconcile(conditions, { now, remindAfterMs: 100 });
  expect(check([{ rule: 'stuck', subject: 'default', summary: '1 is stuck', count: 1 }], 119)).toEqual([]);
  expect(check([], 130)).toMatchObject([{ type: 'alert.resolved', alert: { id: 1, since: 10 } }]);
});

it('a webhook that was disabled before schema 6 misses the events after the migration', () => {
  const ledger = openLedger();
  const webhook = { url: 'https://a.example', types: ['*'], metadata: null, description: '', signature: 'v1' as const };
  const create = (enabled: boolean) =>
    ledger.webhooks.create({ ...webhook, enabled }, { secret: 'whsec_x', publicKey: null }, 0).id;
  const ids = { off: create(false), on: create(true) };
  ledger.track(trackRequests(1), 0);
  ledger.cancel(['s0'], 1);
  ledger.close();
  const db = rawConnection(ledger.file);
  revertTo(db, 4);
  db.close();
  const migrated = openLedger({ file: ledger.file });
  migrated.track(trackRequests(1, 'later'), 2);
  migrated.cancel(['later0'], 3);
  migrated.webhooks.update(ids.off, { enabled: true }, 4);
  expect(migrated.deliveries.replayDead(`webhook:${ids.off}`, 0, 5)).toBe(1);
  expect(migrated.deliveries.replayDead(`webhook:${ids.on}`, 0, 5)).toBe(0);
});

it('the migration of schema 2 derives the time of the final status from the history', () => {
  const ledger = openLedger();
  ledger.track(trackRequests(4), 1);
  ledger.record([observation('finalized', 20, 's0'), observation('error', 30, 's1')], context());
  const corrected = { ...observation('finalized', 50, 's0'), error: 'corrected' };
  ledger.record([corrected], context());
  ledger.cancel(['s2'], 40);
  ledger.close();
  const db = rawConnection(ledger.file);
  revertTo(db, 2);
  db.close();
  openLedger({ file: ledger.file }).close();
  const rows = rawConnection(ledger.file).prepare('SELECT submission_id, ended_at FROM submissions ORDER BY id').raw();
  expect(rows.all()).toEqual([
    ['s0', 20],
    ['s1', null],
    ['s2', 40],
    ['s3', null],
  ]);
  expect(integrityOf(ledger.file)).toBe('ok');
});

it('the migration to schema 12 makes earlier metadata searchable, except damaged metadata', () => {
  const ledger = openLedger();
  const metadata = {
    order: 4711,
    'a "b"': 'x',
    ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, i])),
  };
  ledger.track(
    ['good', 'damaged', 'list'].map((id) => trackRequest(id, { metadata })),
    1,
  );
  ledger.track(trackRequests(1, 'none'), 1);
  const indexed = () => rawConnection(ledger.file).prepare('SELECT * FROM submission_metadata').all();
  const before = indexed();
  ledger.close();
  const db = rawConnection(ledger.file);
  const set = db.prepare('UPDATE submissions SET metadata = ? WHERE submission_id = ?');
  revertTo(db, 11);
  set.run('{"order":47', 'damaged');
  set.run('[1]', 'list');
  db.close();
  const migrated = openLedger({ file: ledger.file });
  const find = (name: string, value: string) =>
    migrated.search.list({ metadata: { [name]: value }, limit: 9 }).submissions.map(({ submissionId }) => submissionId);
  expect([find('order', '4711'), find('a "b"', 'x'), find('k29', '29'), find('k30', '30')]).toEqual([
    ['good'],
    ['good'],
    ['good'],
    [],
  ]);
  expect(indexed()).toEqual(
    expect.arrayContaining(before.filter((row) => (row as { submission: number }).submission === 1)),
  );
  expect(integrityOf(ledger.file)).toBe('ok');
});

describe('a migration that fails', () => {
  /** Makes the migration to schema 13 fail. Returns the version of the schema after opening the file, and its tables. */
  function failedAt13(file: string, change: (db: Database.Database) => void) {
    const before = rawConnection(file);
    change(before);
    before.exec('CREATE TABLE mutes (id INTEGER)');
    before.close();
    expect(() => openLedger({ file })).toThrow('mutes already exists');
    const after = rawConnection(file);
    onTestFinished(() => void after.close());
    const tables = after.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
    return { version: after.pragma('user_version', { simple: true }), tables };
  }

  it('leaves a new ledger empty', () => {
    const file = join(tempFolder(), 'dawatch.db');
    new Database(file).close();
    const failed = failedAt13(file, (db) => db.pragma(`application_id = ${APPLICATION_ID}`));
    expect(failed).toEqual({ version: 0, tables: ['mutes'] });
  });

  it('keeps the earlier migrations of an existing ledger', () => {
    const ledger = openLedger();
    ledger.close();
    expect(failedAt13(ledger.file, (db) => revertTo(db, 11)).version).toBe(12);
  });
});
