import type { Command } from 'commander';
import { systemClock } from '../lib/clock.ts';
import { secretsOf } from '../operations/config/load.ts';
import { loadConfig } from '../wiring/settings.ts';
import { ExitCode, untilStopped } from './exit.ts';
import { ledgerOf, type SettingsOptions, withSettings } from './settings-file.ts';

export function addServe(program: Command): void {
  withSettings(program.command('serve'))
    .description('Run the server, which tracks, polls and notifies.')
    .option(
      '--check-primary <file>',
      'only check, before Litestream starts, that no other server continues the replica: the file `….primary` restored from it',
    )
    .addHelpText(
      'after',
      `
Examples:
  DAWATCH_UPSTREAM_URL=https://upstream.example DAWATCH_UPSTREAM_API_KEY=… dawatch serve
  dawatch sandbox --port 8790 &   DAWATCH_UPSTREAM_URL=http://127.0.0.1:8790 DAWATCH_UPSTREAM_API_KEY=sandbox-key dawatch serve

Changed settings apply after a restart, which takes about a second and loses nothing. SIGTERM or SIGINT stops the server gracefully. Killing it at any moment loses no acknowledged data.
In the background, run the command dawatch itself: ending npx or npm does not end the server.`,
    )
    .action(async (options: SettingsOptions & { checkPrimary?: string }) => {
      if (options.checkPrimary !== undefined) {
        const { checkClaim } = await import('./ledger-command.ts');
        checkClaim(ledgerOf(options), options.checkPrimary);
        return;
      }
      const [{ startApp }, { createLog }] = await Promise.all([
        import('../app.ts'),
        import('../operations/logging/logger.ts'),
      ]);
      const loaded = loadConfig({ env: process.env, file: options.config });
      const { config } = loaded;
      const log = createLog(config.log, process.stdout, { secrets: secretsOf(loaded.settings) });
      const app = await startApp({
        config,
        log,
        clock: systemClock,
        random: Math.random,
        onNewKey: showKey,
        onSyncFailed() {
          log.end();
          process.exit(ExitCode.server);
        },
      });
      await untilStopped();
      await app.close();
      log.end();
    });
}

/** Prints the key to stderr instead of the log, because logs are stored and forwarded. */
function showKey(key: string): void {
  process.stderr.write(
    `\nNo credential is configured, so a service key was created. It is shown only once:\n\n  export DAWATCH_API_KEY=${key}\n\nThe key also signs in to the dashboard at /.\n\n`,
  );
}
