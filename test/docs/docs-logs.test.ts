import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { withLogTables } from '../../.ci/docs/log-tables.ts';
import { LOG_EVENTS, LOG_FIELDS } from '../../src/operations/logging/event-catalog.ts';

const ROOT = join(import.meta.dirname, '../..');
const CATALOG = /^logging\/(?:events\/|event-catalog)/;
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter(
    (file) =>
      file.endsWith('.ts') && !/^(?:client|pacing)\/dist\//.test(file) && !CATALOG.test(file),
  )
  .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'));

it('docs/logs.md lists every event and field of the catalog (npm run docs:logs)', () => {
  const written = readFileSync(join(ROOT, 'docs/logs.md'), 'utf8');
  expect(withLogTables(written)).toBe(written);
  for (const name of [...Object.keys(LOG_EVENTS), ...Object.keys(LOG_FIELDS)])
    expect(written).toContain(`| \`${name}\` |`);
});

it('every event is logged by at least one source file', () => {
  const isLogged = (name: string) => sources.some((source) => source.includes(`'${name}'`));
  expect(Object.keys(LOG_EVENTS).filter((name) => !isLogged(name))).toEqual([]);
});

it('every field belongs to at least one event', () => {
  const used = Object.values(LOG_EVENTS).flatMap(({ fields }) => fields as readonly string[]);
  expect(Object.keys(LOG_FIELDS).filter((field) => !used.includes(field))).toEqual([]);
});

it('no source file writes to the console', () => {
  for (const source of sources) expect(source).not.toMatch(/\bconsole\.\w+\(/);
});
