import type { Command } from 'commander';
import { ENVIRONMENT, isSecret, loadConfig, type Setting } from '../config.ts';

export function addConfig(program: Command): void {
  program
    .command('config')
    .description('Show every setting, its value, and where that came from. Secrets are masked.')
    .option('--config <file>', 'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if there is one)')
    .option('--json', 'print a JSON array')
    .addHelpText('after', '\nExample:\n  DAWATCH_PORT=9000 dawatch config | grep port')
    .action((options: { config?: string; json?: boolean }) => {
      const { settings } = loadConfig({ env: process.env, file: options.config });
      const rows = settings.map((setting) => ({ ...setting, value: shown(setting) }));
      process.stdout.write(options.json ? `${JSON.stringify(rows.map(toJson), null, 2)}\n` : table(rows));
    });
}

function shown({ path, value }: Setting): unknown {
  return value !== undefined && isSecret(path) ? '********' : value;
}

function toJson(row: Setting) {
  return {
    name: row.path,
    value: row.value ?? null,
    source: row.source,
    environment: variableOf(row.path),
    description: row.description,
  };
}

function variableOf(path: string): string | null {
  return Object.entries(ENVIRONMENT).find(([, target]) => target === path)?.[0] ?? null;
}

function table(rows: readonly Setting[]): string {
  const cells = rows.map((row) => {
    const variable = variableOf(row.path);
    const about = variable ? `${row.description} [${variable}]` : row.description;
    return [row.path, row.value === undefined ? '(not set)' : String(row.value), row.source, about];
  });
  const widths = [0, 1, 2].map((column) => Math.max(...cells.map((row) => (row[column] ?? '').length)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}
