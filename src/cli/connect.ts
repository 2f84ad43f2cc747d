import type { Command } from 'commander';
import { ApiError, DawatchClient } from '../client/client.ts';
import { loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { escapeText } from '../domain/text.ts';
import { CommandError, ExitCode } from './exit.ts';
import { withWaitIndicator } from './output/wait-indicator.ts';

const ADMIN_VARIABLE = 'DAWATCH_ADMIN_TOKEN';
const ADMIN_ADVICE = '`dawatch token create --role admin --name …` makes one';

export type ConnectOptions = { server?: string };

/** The option of every command that talks to a server. */
export function withServer(command: Command): Command {
  return withAddress(command).addHelpText(
    'after',
    '\nThe key is taken from DAWATCH_API_KEY, never from an argument: others see those.',
  );
}

export function withAddress(command: Command): Command {
  return command.option(
    '--server <url>',
    'address of the server [DAWATCH_URL] (default: where the settings of this folder let it listen)',
  );
}

/** The option of a command that needs the role admin. */
export function withAdmin(command: Command): Command {
  return withAddress(command).addHelpText('after', `\nThe token is taken from ${ADMIN_VARIABLE}.`);
}

export function requestAsAdmin<T>(options: ConnectOptions, ask: (client: DawatchClient) => Promise<T>): Promise<T> {
  return requestWithToken(options, { variables: [ADMIN_VARIABLE], advice: ADMIN_ADVICE }, ask);
}

/** Where the server is that a command talks to. */
export function serverAddress(options: ConnectOptions): string {
  return addressOf(options, loadConfig({ env: process.env }).config);
}

export function connect(options: ConnectOptions): DawatchClient {
  const { config } = loadConfig({ env: process.env });
  const url = addressOf(options, config);
  const apiKey = config.auth.api_key;
  if (apiKey === undefined)
    throw new CommandError(
      'set DAWATCH_API_KEY to the service key that `dawatch serve` showed at its first start, or make one: `dawatch token create --role service --name …`',
      ExitCode.usage,
    );
  return new DawatchClient({ url, apiKey });
}

/** Asks with the token in the first of these variables that is set. `advice`: where to get one. */
export async function requestWithToken<T>(
  options: ConnectOptions,
  { variables, advice }: { variables: readonly string[]; advice: string },
  ask: (client: DawatchClient) => Promise<T>,
): Promise<T> {
  const { config } = loadConfig({ env: process.env });
  const url = addressOf(options, config);
  const variable = variables.find((name) => process.env[name]);
  const token = variable && process.env[variable];
  if (!token) throw new CommandError(`set ${variables.join(' or ')} to a token: ${advice}`, ExitCode.usage);
  try {
    return await withWaitIndicator(url, ask(new DawatchClient({ url, token })));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403))
      throw new CommandError(
        `${escapeText(error.message, 2_000)} (${variable} holds the token that was sent; ${advice})`,
        ExitCode.server,
      );
    throw error;
  }
}

function addressOf(options: ConnectOptions, config: Config): string {
  const { host, port } = config.server;
  const listening = `http://${host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`;
  const url = options.server ?? process.env.DAWATCH_URL ?? listening;
  // "localhost:8080" parses as well, with localhost as the scheme.
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url))
    throw new CommandError(
      `${JSON.stringify(url)} is no http:// or https:// address: http://127.0.0.1:8080 is one`,
      ExitCode.usage,
    );
  return url;
}
