import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { withLogTable } from '../../.ci/docs/log-tables.ts';
import { LOG_EVENTS } from '../../src/operations/logging/event-catalog.ts';

const ROOT = join(import.meta.dirname, '../..');
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !/^(?:client|pacing)\/dist\/|event-catalog/.test(file))
  .map((file) => readFileSync(join(ROOT, 'src', file), 'utf8'));

it('docs/observability.md lists every event (npm run docs:logs)', () => {
  const written = readFileSync(join(ROOT, 'docs/observability.md'), 'utf8');
  expect(withLogTable(written)).toBe(written);
});

it('every event is logged by at least one source file', () => {
  const isLogged = (name: string) => sources.some((source) => source.includes(`'${name}'`));
  expect(Object.keys(LOG_EVENTS).filter((name) => !isLogged(name))).toEqual([]);
});

it('no source file writes to the console', () => {
  for (const source of sources) expect(source).not.toMatch(/\bconsole\.\w+\(/);
});
