import { statSync } from 'node:fs';
import type { Command } from 'commander';
import {
  ConfigError,
  type LoadedConfig,
  loadConfig,
  secretsOf,
} from '../operations/config/load.ts';
import type { SettingsSource } from '../operations/config/reload.ts';
import type { SecretUser } from '../operations/config/settings-file.ts';
import type { OpenLog } from '../operations/logging/logger.ts';

export type SettingsOptions = { config?: string };

/** Adds the option --config. */
export function withSettings(command: Command): Command {
  return command.option(
    '--config <file>',
    'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if it exists)',
  );
}

/** Returns the path of the ledger (`database` in the settings). */
export function ledgerOf({ config }: SettingsOptions): string {
  return loadConfig({ env: process.env, file: config, user: 'none' }).config.database;
}

/**
 * How a running process loads its settings again. The settings file of the start, if there was one,
 * must still exist. If it had settings, an empty one is an error: it is being written, or it was a
 * pipe, which cannot be read again.
 */
export function settingsSource(
  { file, settings }: LoadedConfig,
  user: SecretUser,
  log: OpenLog,
): SettingsSource {
  const hadSettings = file !== undefined && settings.some(({ source }) => source.startsWith(file));
  return {
    load() {
      if (hadSettings && statSync(file, { throwIfNoEntry: false })?.size === 0)
        throw new ConfigError([`${file}: the file is empty`]);
      return loadConfig({ env: process.env, file, user, isReload: true });
    },
    onApplied: ({ config, settings }) =>
      log.change({ level: config.log.level, secrets: secretsOf(settings) }),
  };
}
