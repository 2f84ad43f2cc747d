import type { Command } from 'commander';
import { ApiError, DawatchClient } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { mistypedReason } from '../operations/config/schema-problems.ts';
import { readSecretFile } from '../operations/config/settings-file.ts';
import { type Config, loadConfig } from '../wiring/settings.ts';
import { CommandError, ExitCode } from './exit.ts';
import { listeningAddress } from './settings-file.ts';

const ADMIN_VARIABLE = 'DAWATCH_ADMIN_TOKEN';
const ADMIN_ADVICE =
  'create one with `dawatch token create --role admin --name …`; for lists, the role operator suffices';
export type ConnectOptions = { server?: string };

export function withServer(command: Command): Command {
  return withAddress(command).addHelpText(
    'after',
    '\nThe key is read from DAWATCH_API_KEY. An argument would be visible to other users of the machine.',
  );
}

export function withAddress(command: Command): Command {
  return command.option(
    '--server <url>',
    'address of the server [DAWATCH_URL] (default: the address in the settings of this directory)',
  );
}

export function withAdmin(command: Command): Command {
  return withAddress(command).addHelpText('after', `\nThe token is read from ${ADMIN_VARIABLE}.`);
}

/** Runs requests with the admin token. Throws a CommandError without a token. */
export function requestAsAdmin<T>(
  options: ConnectOptions,
  request: (client: DawatchClient) => Promise<T>,
): Promise<T> {
  return requestWithToken(options, { variables: [ADMIN_VARIABLE], advice: ADMIN_ADVICE }, request);
}

export function serverAddress(options: ConnectOptions): string {
  const url = options.server ?? process.env.DAWATCH_URL ?? listeningAddress(settingsHere('none'));
  // "localhost:8080" parses as well, with localhost as the scheme.
  const parsed = /^https?:\/\//i.test(url) ? URL.parse(url) : null;
  // An address with a password is not shown.
  if (url.includes('@'))
    throw new CommandError(
      'the address of the server must not contain a user name or a password',
      ExitCode.usage,
    );
  if (!parsed)
    throw new CommandError(
      `${JSON.stringify(url)} is not an http:// or https:// address such as http://127.0.0.1:8080`,
      ExitCode.usage,
    );
  return url;
}

/** Returns a client with the service key. Throws a CommandError without a key. */
export function connect(options: ConnectOptions): DawatchClient {
  const url = serverAddress(options);
  const apiKey = serviceKey();
  if (apiKey === undefined)
    throw new CommandError(
      'set DAWATCH_API_KEY to the service key that `dawatch serve` printed at its first start, or create one: `dawatch token create --role service --name …`',
      ExitCode.usage,
    );
  return new DawatchClient({ url, apiKey });
}

/** Takes the first of `variables` that is set. Errors include `advice` on how to get a token. */
export async function requestWithToken<T>(
  options: ConnectOptions,
  { variables, advice }: { variables: readonly string[]; advice: string },
  request: (client: DawatchClient) => Promise<T>,
): Promise<T> {
  const url = serverAddress(options);
  const { variable, token } = tokenIn(variables) ?? {};
  if (token === undefined)
    throw new CommandError(`set ${variables.join(' or ')} to a token: ${advice}`, ExitCode.usage);
  try {
    return await request(new DawatchClient({ url, token }));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403))
      throw new CommandError(
        `${escapeText(error.message, 2_000)} (the token was read from ${variable}; ${advice})`,
        ExitCode.server,
      );
    throw error;
  }
}

export function credentialHeaders(): Record<string, string> {
  const apiKey = serviceKey();
  const { token } = tokenIn([ADMIN_VARIABLE]) ?? {};
  return {
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
}

/** Returns the token in the first variable that is set, or in the file that `…_FILE` names. */
function tokenIn(variables: readonly string[]): { variable: string; token: string } | undefined {
  const variable = variables
    .flatMap((name) => [name, `${name}_FILE`])
    .find((name) => process.env[name]);
  const value = variable && process.env[variable];
  if (!value) return undefined;
  const isFile = variable.endsWith('_FILE');
  const refuse = (reason: string) => new CommandError(`${variable} ${reason}`, ExitCode.usage);
  const mistyped = mistypedReason(value, { isPath: isFile, isSecret: true });
  if (mistyped !== undefined) throw refuse(mistyped);
  const read = isFile ? readSecretFile(value) : { secret: value };
  if ('problem' in read) throw refuse(read.problem);
  if (!/^[\x21-\x7e]+$/.test(read.secret)) throw refuse('must be printable ASCII without spaces');
  return { variable, token: read.secret };
}

function serviceKey(): string | undefined {
  return tokenIn(['DAWATCH_API_KEY'])?.token ?? settingsHere('client').auth.service_key;
}

/** Without the admin token of the environment, which belongs to the client. */
function settingsHere(user: 'client' | 'none'): Config {
  const env = Object.entries(process.env).filter(
    ([name]) => !/^DAWATCH_ADMIN_TOKEN(?:_FILE)?$/.test(name),
  );
  return loadConfig({ env: Object.fromEntries(env), user }).config;
}
