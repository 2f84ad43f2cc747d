import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { APPLICATION_ID, MIGRATIONS } from '../../src/ledger/schema.ts';
import { integrityOf, openLedger, rawConnection } from '../support/ledger/ledger-file.ts';
import { tempFolder } from '../support/temp-folder.ts';

/**
 * A dump of a ledger of each released schema: `schema-1.sql` and so on, made by `sqlite3 dawatch.db
 * .dump` after some submissions of every status, a webhook with deliveries, a token and a lookup of
 * a user; the three pragmas that it omits are in front. `npm run release` requires a dump of the
 * newest schema.
 */
const EARLIER = join(import.meta.dirname, 'earlier');
const TABLES = [
  'submissions',
  'history',
  'outbox',
  'deliveries',
  'attempts',
  'webhooks',
  'credentials',
  'audit',
];

it.each(readdirSync(EARLIER))(
  'a ledger of %s keeps its rows and continues with the newest schema',
  (name) => {
    const file = join(tempFolder(), 'dawatch.db');
    const db = new Database(file);
    db.exec(readFileSync(join(EARLIER, name), 'utf8'));
    const countsIn = (one: Database.Database) =>
      TABLES.map((table) => one.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number);
    const before = countsIn(db);
    db.close();
    openLedger({ file }).close();
    const migrated = rawConnection(file);
    expect(countsIn(migrated)).toEqual(before);
    expect(Math.min(...before)).toBeGreaterThan(0);
    expect(migrated.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length);
    migrated.close();
    expect(integrityOf(file)).toBe('ok');
  },
);

it('a migration that fails leaves the file as it was', () => {
  const file = join(tempFolder(), 'dawatch.db');
  const before = new Database(file);
  before.pragma(`application_id = ${APPLICATION_ID}`);
  before.exec('CREATE TABLE mutes (id INTEGER)');
  before.close();
  expect(() => openLedger({ file })).toThrow('mutes already exists');
  const after = rawConnection(file);
  const tables = after.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  expect([after.pragma('user_version', { simple: true }), tables]).toEqual([0, ['mutes']]);
  after.close();
});
