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

it.each(Object.keys(LOG_EVENTS))('the event %s is logged by at least one source file', (name) => {
  expect(sources.filter((source) => source.includes(`'${name}'`))).not.toEqual([]);
});

it.each(Object.keys(LOG_FIELDS))('the field %s belongs to at least one event', (field) => {
  const events = Object.values(LOG_EVENTS).filter(({ fields }) =>
    (fields as readonly string[]).includes(field),
  );
  expect(events).not.toEqual([]);
});

it('no source file writes to the console', () => {
  for (const source of sources) expect(source).not.toMatch(/\bconsole\.\w+\(/);
});
