import type { Command } from 'commander';
import { type Config, loadConfig } from '../wiring/settings.ts';

export type SettingsOptions = { config?: string };

export function withSettings(command: Command): Command {
  return command.option(
    '--config <file>',
    'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if it exists)',
  );
}

export function ledgerOf({ config }: SettingsOptions): string {
  return loadConfig({ env: process.env, file: config, user: 'none' }).config.database;
}

export function listeningAddress({ server: { host, port } }: Config): string {
  return `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
}
