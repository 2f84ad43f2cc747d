import type { Command } from 'commander';
import { loadConfig, secretsOf } from '../../../config/load.ts';
import { systemClock } from '../../../platform/system-clock.ts';
import { untilStopped } from '../../input/signals.ts';

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('Run the server: track submissions over HTTP, poll the upstream, store the history.')
    .option('--config <file>', 'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if it exists)')
    .addHelpText(
      'after',
      `
Examples:
  DAWATCH_UPSTREAM_URL=https://upstream.example DAWATCH_UPSTREAM_API_KEY=… dawatch serve
  dawatch sandbox --port 8790 &   DAWATCH_UPSTREAM_URL=http://127.0.0.1:8790 DAWATCH_UPSTREAM_API_KEY=sandbox-key dawatch serve

SIGTERM or SIGINT stops the server gracefully. Killing it at any moment loses no acknowledged data.`,
    )
    .action(async (options: { config?: string }) => {
      const [{ startApp }, { createLog }] = await Promise.all([
        import('../../../app.ts'),
        import('../../../logging/logger.ts'),
      ]);
      const { config, settings } = loadConfig({ env: process.env, file: options.config });
      const log = createLog(config.log, process.stdout, { secrets: secretsOf(settings) });
      const app = await startApp({ config, log, clock: systemClock, random: Math.random, onNewKey: showKey });
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
