import type { Command } from 'commander';
import { loadConfig } from '../../config/load.ts';

export type SettingsOptions = { config?: string };

/** The option of every command that works on the ledger itself. */
export function withSettings(command: Command): Command {
  return command.option(
    '--config <file>',
    'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if there is one)',
  );
}

/** Path of the ledger that the settings name. */
export function ledgerOf({ config }: SettingsOptions): string {
  return loadConfig({ env: process.env, file: config }).config.database;
}
