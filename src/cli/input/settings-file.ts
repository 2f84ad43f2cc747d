import { statSync } from 'node:fs';
import type { Command } from 'commander';
import { ConfigError, type LoadedConfig, loadConfig, secretsOf } from '../../config/load.ts';
import type { SecretUser } from '../../config/secret-files.ts';
import { TENANT_PATTERN } from '../../domain/access/tenant.ts';
import { tenantLedger } from '../../ledger/file/files.ts';
import type { OpenLog } from '../../logging/logger.ts';
import type { SettingsSource } from '../../wiring/reload.ts';
import { CommandError, ExitCode } from '../exit.ts';

export type SettingsOptions = { config?: string };
export type LedgerOptions = SettingsOptions & { tenant?: string };

/** Adds the option --config. */
export function withSettings(command: Command): Command {
  return command.option(
    '--config <file>',
    'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if it exists)',
  );
}

/** Returns the names of the tenants in the settings. */
export function tenantsOf({ config }: SettingsOptions): string[] {
  return Object.keys(loadConfig({ env: process.env, file: config, user: 'none' }).config.tenants);
}

/** Adds the options of a command that works on one ledger. */
export function withLedger(command: Command): Command {
  return withSettings(command).option(
    '--tenant <name>',
    'use the ledger of this tenant (default: the ledger for data without a tenant)',
  );
}

/** Returns the path of the ledger for data without a tenant (`database` in the settings). */
export function ledgerOf({ config }: SettingsOptions): string {
  return loadConfig({ env: process.env, file: config, user: 'none' }).config.database;
}

/**
 * Returns the path of the ledger of the tenant, which may have been removed from the settings. Without a tenant, returns the path of
 * the ledger for data without a tenant, and writes a note to stderr if there are ledgers of tenants.
 */
export function selectedLedgerOf({ config: file, tenant }: LedgerOptions): string {
  const { database, tenants } = loadConfig({ env: process.env, file, user: 'none' }).config;
  if (tenant !== undefined) {
    if (!TENANT_PATTERN.test(tenant))
      throw new CommandError(
        '--tenant must be a name of at most 32 characters out of a-z, 0-9, - and _',
        ExitCode.usage,
      );
    return tenantLedger(database, tenant);
  }
  const names = Object.keys(tenants);
  if (names.length > 0)
    process.stderr.write(`without the ledgers of the tenants (--tenant <name>): ${names.join(', ')}\n`);
  return database;
}

/**
 * How a running process loads its settings again. The settings file of the start, if there was one, must still exist. If it had
 * settings, an empty one is an error: it is being written, or it was a pipe, which cannot be read again.
 */
export function settingsSource({ file, settings }: LoadedConfig, user: SecretUser, log: OpenLog): SettingsSource {
  const hadSettings = file !== undefined && settings.some(({ source }) => source.startsWith(file));
  return {
    load() {
      if (hadSettings && statSync(file, { throwIfNoEntry: false })?.size === 0)
        throw new ConfigError([`${file}: the file is empty`]);
      return loadConfig({ env: process.env, file, user, isReload: true });
    },
    onApplied: ({ config, settings }) => log.change({ level: config.log.level, secrets: secretsOf(settings) }),
  };
}
