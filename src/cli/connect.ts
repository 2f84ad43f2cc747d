import type { Command } from 'commander';
import { DawatchClient } from '../client/client.ts';
import { loadConfig } from '../config.ts';
import { CommandError, ExitCode } from './exit.ts';

export type ConnectOptions = { url?: string };

/** The option of every command that talks to a server. */
export function withServer(command: Command): Command {
  return command
    .option(
      '--url <url>',
      'address of the server [DAWATCH_URL] (default: where the settings of this folder let it listen)',
    )
    .addHelpText('after', '\nThe key is taken from DAWATCH_API_KEY, never from an argument: others see those.');
}

export function connect(options: ConnectOptions): DawatchClient {
  const { config } = loadConfig({ env: process.env });
  const { host, port } = config.server;
  const listening = `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
  const url = options.url ?? process.env.DAWATCH_URL ?? listening;
  // "localhost:8080" parses as well, with localhost as the scheme.
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new CommandError(`${JSON.stringify(url)} is no http:// or https:// address`, ExitCode.usage);
  const apiKey = config.auth.api_key;
  if (apiKey === undefined)
    throw new CommandError(
      'set DAWATCH_API_KEY to the service key that `dawatch serve` showed at its first start',
      ExitCode.usage,
    );
  return new DawatchClient({ url, apiKey });
}
