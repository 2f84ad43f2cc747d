import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { settingsPage } from '../../.ci/docs/settings-page.ts';

const file = readFileSync(join(import.meta.dirname, '../../docs/settings.md'), 'utf8');

it('docs/settings.md matches the schema (npm run docs:settings)', () => {
  expect(file).toBe(settingsPage());
});
