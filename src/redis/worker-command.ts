import { hostname } from 'node:os';
import type { Command } from 'commander';
import { CommandError, ExitCode, untilStopped } from '../cli/exit.ts';
import { systemClock } from '../lib/clock.ts';
import { secretsOf } from '../operations/config/load.ts';
import { VERSION } from '../operations/version.ts';
import { type Config, loadConfig } from '../wiring/settings.ts';

const HOST = hostname().replaceAll(/[^\w.-]/g, '-');

export function addWorker(program: Command): void {
  program
    .command('worker')
    .description('Poll the upstream for a server that uses the same Redis.')
    .option(
      '--config <file>',
      'settings file [DAWATCH_CONFIG] (default: config/dawatch.yaml, if it exists)',
    )
    .option(
      '--check',
      'health check: exit with 0 if a worker of this host is alive, otherwise with 5',
    )
    .addHelpText(
      'after',
      `
Example:
  DAWATCH_REDIS_URL=redis://redis:6379 DAWATCH_UPSTREAM_URL=https://upstream.example DAWATCH_UPSTREAM_API_KEY=… dawatch worker

A worker stores nothing. SIGTERM or SIGINT stops it when its requests are complete, at the latest after 15 s.
If it is killed, its polls in flight are repeated. While Redis is unavailable, the worker reconnects indefinitely.`,
    )
    .action(async (options: { config?: string; check?: boolean }) => {
      const user = options.check ? 'worker_check' : 'worker';
      const loaded = loadConfig({ env: process.env, file: options.config, user });
      const { config } = loaded;
      if (options.check) return check(config);
      const [{ startWorker }, { createLog }] = await Promise.all([
        import('./worker.ts'),
        import('../operations/logging/logger.ts'),
      ]);
      const log = createLog(config.log, process.stdout, { secrets: secretsOf(loaded.settings) });
      const name = `${HOST}-${process.pid}`;
      const worker = startWorker({ config, log, clock: systemClock, version: VERSION, name });
      await untilStopped();
      await worker.close();
      log.end();
    });
}

const CHECK_WITHIN_MS = 2_000;

/** Throws a CommandError unless a worker of this host is connected to Redis. */
async function check({ redis }: Config): Promise<void> {
  const { url } = redis;
  if (url === undefined)
    throw new CommandError('no Redis is configured: set DAWATCH_REDIS_URL', ExitCode.usage);
  const [{ disconnect, openRedis, waitUntilReady }, { listWorkers, openPollsQueue }] =
    await Promise.all([import('./connections.ts'), import('./polls-queue.ts')]);
  const connection = openRedis({ url });
  try {
    await waitUntilReady(connection, CHECK_WITHIN_MS);
    const workers = await listWorkers(openPollsQueue(connection), connection);
    if (workers.some((name) => name.startsWith(`${HOST}-`))) return;
  } catch {
    throw new CommandError('Redis does not respond', ExitCode.server);
  } finally {
    disconnect(connection);
  }
  throw new CommandError('no worker of this host is connected to Redis', ExitCode.server);
}
