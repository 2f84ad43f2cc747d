import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Command } from 'commander';
import { escapeText } from '../lib/text.ts';
import { type Setting, variableOf } from '../operations/config/load.ts';
import { isSecret } from '../operations/config/settings-file.ts';
import { loadConfig } from '../wiring/settings.ts';
import { table, toJson } from './output.ts';
import { withSettings } from './settings-file.ts';

const { resolve } = createRequire(import.meta.url);
/** In the package, which is found by its name from the sources and from dist. */
const EVERY_SETTING = join(resolve('dawatch/package.json'), '../config/dawatch.yaml');

export function addConfig(program: Command): void {
  withSettings(program.command('config').alias('settings'))
    .description('Show every setting with its value and source. Secrets are masked.')
    .option('--json', 'print a JSON array')
    .addHelpText(
      'after',
      () =>
        `\nLong values are truncated. --json has all of them.\n\nExample:\n  DAWATCH_PORT=9000 dawatch config | grep port\n\n${readFileSync(EVERY_SETTING, 'utf8')}`,
    )
    .action((options: { config?: string; json?: boolean }) => {
      const { settings } = loadConfig({ env: process.env, file: options.config });
      const rows = settings.map((setting) => ({ ...setting, value: shown(setting) }));
      process.stdout.write(options.json ? `${toJson(rows.map(toShown), 2)}\n` : toTable(rows));
    });
}

function shown({ path, value }: Setting): unknown {
  const isSet = value !== undefined && !(Array.isArray(value) && value.length === 0);
  return isSet && isSecret(path) ? '********' : value;
}

function toShown(row: Setting) {
  return {
    name: row.path,
    value: row.value ?? null,
    source: row.source,
    environment: variableOf(row.path),
    description: row.description,
  };
}

/** Longer ones, such as lists of routes, are complete in the JSON. */
const MAX_VALUE_CHARS = 32;

function toTable(rows: readonly Setting[]): string {
  return table(
    rows.map((row) => {
      const variable = variableOf(row.path);
      return [
        escapeText(row.path),
        escapeText(textOf(row.value), MAX_VALUE_CHARS),
        escapeText(row.source),
        variable && row.source !== variable ? `[${variable}]` : '',
      ];
    }),
  );
}

function textOf(value: unknown): string {
  if (value === undefined) return '(not set)';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
