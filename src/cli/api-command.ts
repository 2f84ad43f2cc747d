import { once } from 'node:events';
import type { Command } from 'commander';
import { noResponse, toApiError } from '../client/errors.ts';
import { escapeLines } from '../lib/text.ts';
import { type ConnectOptions, credentialHeaders, serverAddress, withAddress } from './connect.ts';
import { CommandError, ExitCode } from './exit.ts';
import { readText } from './input.ts';

type Options = ConnectOptions & { data?: string };

export function addApi(program: Command): void {
  withAddress(program.command('api'))
    .description('Send a request to a route of the HTTP interface and print the response.')
    .usage('[options] [method] <path>')
    .argument('<request...>', 'the method (default: GET, with --data POST) and the path')
    .option('--data <json>', 'body of the request: JSON, @ and the name of a file, or - for stdin')
    .addHelpText(
      'after',
      `
Sends DAWATCH_API_KEY as x-api-key and DAWATCH_ADMIN_TOKEN as the bearer, if they are set. The server shows its routes at /docs.

Examples:
  dawatch api /v1/overview
  dawatch api '/v1/deliveries?state=dead&limit=10'
  dawatch api /v1/mutes --data '{"rule":"stuck","until":"2027-01-02T06:00:00Z"}'
  dawatch api PATCH /v1/webhooks/wh_1 --data @webhook.json`,
    )
    .action(async (words: string[], options: Options) => {
      const { method, path } = requestIn(words, options);
      const body = options.data === undefined ? null : await bodyFrom(options.data);
      const url = serverAddress(options).replace(/\/+$/, '');
      const headers = {
        accept: 'application/json, */*;q=0.5',
        ...credentialHeaders(),
        ...(body !== null && { 'content-type': 'application/json' }),
      };
      const sent = fetch(`${url}${path}`, { method, headers, body, redirect: 'manual' });
      const response = await sent.catch((error: unknown) => {
        throw noResponse(url, error);
      });
      if (!response.ok) throw await toApiError(response, url);
      await print(response);
    });
}

function requestIn(words: readonly string[], { data }: Options): { method: string; path: string } {
  const [method = '', path = ''] =
    words.length === 1 ? [data === undefined ? 'GET' : 'POST', words[0]] : words;
  if (words.length > 2 || !/^[a-z]+$/i.test(method) || !path.startsWith('/'))
    throw new CommandError(
      'expected a method and a path, such as DELETE /v1/mutes/3',
      ExitCode.usage,
    );
  if (data !== undefined && /^(?:get|head)$/i.test(method))
    throw new CommandError('a GET or HEAD request has no --data', ExitCode.usage);
  return { method: method.toUpperCase(), path };
}

async function bodyFrom(data: string): Promise<string> {
  if (data === '-') return readText('-');
  return data.startsWith('@') ? readText(data.slice(1)) : data;
}

/** Prints the body as it arrives, and a line feed if it does not end with one. */
async function print({ body }: Response): Promise<void> {
  const { stdout } = process;
  let last = '\n';
  for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    if (!stdout.write(escapeLines(text))) await once(stdout, 'drain');
    last = text.at(-1) ?? last;
  }
  if (last !== '\n') stdout.write('\n');
}
