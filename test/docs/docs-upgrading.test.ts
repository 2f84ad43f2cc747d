import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import pkg from '../../package.json' with { type: 'json' };
import client from '../../src/client/package.json' with { type: 'json' };
import { schemaOf } from '../../src/ledger/schema.ts';
import pacing from '../../src/pacing/package.json' with { type: 'json' };

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
  const listed = [...textOf('upgrading.md').matchAll(/^\| (\d+) \|/gm)].map(([, number]) =>
    Number(number),
  );
  expect(listed).toEqual(Array.from({ length: currentSchema() }, (_, index) => index + 1));
});

it('docs/cli.md shows the current schema version in the output of the doctor', () => {
  expect(textOf('cli.md')).toContain(`data/dawatch.db, schema ${currentSchema()}\n`);
});

it('docs/upgrading.md states the supported versions of Node of every package', () => {
  const row = (name: string) =>
    textOf('upgrading.md').match(new RegExp(`^\\| ${name} \\|.*$`, 'm'))?.[0];
  const atLeast = ({ engines }: { engines: { node: string } }) =>
    `Node ${engines.node.replace('>=', '')} and newer`;
  expect(row('Package `dawatch`')).toContain(atLeast(pkg));
  expect(row('`@dawatch/client`')).toContain(atLeast(client));
  expect(row('`@dawatch/pacing`')).toContain(atLeast(pacing));
});
