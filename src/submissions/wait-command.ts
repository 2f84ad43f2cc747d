import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { parseDuration } from '../cli/input.ts';
import { awaitFinal } from './await-final.ts';
import { readIds } from './cli-ids.ts';

export function addWait(program: Command): void {
  withServer(program.command('wait'))
    .description('Wait until tracked submissions are final.')
    .argument('[ids...]', 'submission ids; without ids, they are read from stdin, one per line')
    .option(
      '--timeout <duration>',
      'maximum time to wait: 90s, 10m, 24h (default: no limit)',
      parseDuration,
    )
    .option('--json', 'print one JSON line per ended submission')
    .addHelpText(
      'after',
      '\nExample:\n  dawatch wait 9f1c2f6e-8a44-4a46-9a0d-2f6f6a9f0c11 --timeout 5m && deploy',
    )
    .action(
      async (args: string[], options: ConnectOptions & { timeout?: number; json?: boolean }) => {
        const ids = await readIds(args, undefined);
        const client = connect(options);
        // Reports an unreachable server or an unknown id at once.
        await client.wait(ids[0] ?? '', 0);
        process.exitCode = await awaitFinal(client, ids, {
          timeoutMs: options.timeout,
          json: options.json ?? false,
        });
      },
    );
}
