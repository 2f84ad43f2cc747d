import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { settingsPage } from '../../.ci/docs/settings-page.ts';
import { loadConfig } from '../../src/operations/config/load.ts';
import { ENVIRONMENT } from '../../src/operations/config/schema.ts';

const file = readFileSync(join(import.meta.dirname, '../../docs/settings.md'), 'utf8');

it('docs/settings.md matches the schema (npm run docs:settings)', () => {
  expect(file).toBe(settingsPage());
});

it('docs/settings.md lists every setting with its default and description, and every environment variable', () => {
  const { settings } = loadConfig({ env: {}, file: null });
  for (const { path, value, description } of settings) {
    const name = path.replace('upstreams.default', 'upstreams.<name>');
    const line = file.split('\n').find((text) => text.startsWith(`| \`${name}\` |`));
    const isNamed = path === 'channels';
    if (isNamed) continue;
    expect(line, path).toContain(description.split('|')[0]);
    expect(line, path).toContain(
      value === undefined ? '| not set |' : `\`${JSON.stringify(value)}\``,
    );
  }
  for (const variable of Object.keys(ENVIRONMENT)) expect(file).toContain(`\`${variable}\``);
});

it('docs/settings.md lists channels by type', () => {
  for (const type of ['slack', 'discord', 'teams', 'apprise', 'email'])
    expect(file).toContain(`### type: ${type}\n`);
  expect(file).toContain('| `channels.<name>.smtp_url` | required |');
});
