import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { schemaOf } from '../../src/ledger/file/schema.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const textOf = (name: string) => readFileSync(join(DOCS, name), 'utf8');

function currentSchema(): number {
  const db = new Database(':memory:');
  try {
    return schemaOf(db).needed;
  } finally {
    db.close();
  }
}

it('docs/upgrading.md lists every schema version of the ledger', () => {
  const listed = [...textOf('upgrading.md').matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number));
  expect(listed).toEqual(Array.from({ length: currentSchema() }, (_, index) => index + 1));
});

it('docs/cli.md shows the current schema version in the output of the doctor', () => {
  expect(textOf('cli.md')).toContain(`data/dawatch.db, schema ${currentSchema()}\n`);
});
