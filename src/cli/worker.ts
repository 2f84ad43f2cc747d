import { hostname } from 'node:os';
import type { Command } from 'commander';
import pkg from '../../package.json' with { type: 'json' };
import { systemClock } from '../clock.ts';
import { loadConfig } from '../config.ts';
import { createLog } from '../log.ts';
import { startWorker } from '../worker.ts';
import { untilStopped } from './signals.ts';

export function addWorker(program: Command): void {
  program
    .command('worker')
    .description('Ask the upstream for a server that uses the same Redis. Run as many as you like, anywhere.')
    .option('--config <file>', 'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if there is one)')
    .addHelpText(
      'after',
      `
Example:
  DAWATCH_REDIS_URL=redis://redis:6379 DAWATCH_UPSTREAM_URL=https://upstream.example DAWATCH_UPSTREAM_API_KEY=… dawatch worker

It keeps nothing. SIGTERM or SIGINT stops it once its requests are answered, server.shutdown_s at most; killing it costs
a repeat of what it was asking. While Redis is away it waits for it, however long.`,
    )
    .action(async (options: { config?: string }) => {
      const { config } = loadConfig({ env: process.env, file: options.config });
      const log = createLog(config.log, process.stdout);
      const name = `${hostname().replaceAll(/[^\w.-]/g, '-')}-${process.pid}`;
      const worker = startWorker({ config, log, clock: systemClock, version: pkg.version, name });
      await untilStopped();
      await worker.close();
    });
}
