import { type Command, Option } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { durationOption } from '../cli/duration.ts';
import { collectMetadata, collectTypes } from '../cli/event-filter.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { toJson } from '../cli/json.ts';
import { readSecret } from '../cli/text-input.ts';
import type {
  MetadataFilter,
  NewWebhook,
  WebhookPatch,
  WebhookWithSecret,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { SIGNATURES } from './webhook.ts';
import { webhookText } from './webhook-text.ts';

type Options = ConnectOptions & {
  type?: string[];
  /** false: remove the filter. */
  metadata?: MetadataFilter | false;
  description?: string;
  json?: boolean;
};

const ID = 'id of the webhook, from `dawatch webhooks list`';
const SECRET_FILE = 'file with your own secret; - reads stdin (default: a generated secret)';
const FILTERS = `
In --metadata, a value that is a JSON number, true, false or null has that type; any other value, or one in quotes, is text.`;

export function addCreate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('create')))
    .description('Create a webhook and print its signing secret. The secret cannot be shown again.')
    .argument('<url>', 'receiver address: https://, and public unless the server allows otherwise')
    .option('--disabled', 'create it disabled')
    .addOption(
      new Option('--signature <kind>', 'v1: shared secret; v1a: ed25519, prints the public key')
        .choices(SIGNATURES)
        .default('v1'),
    )
    .option('--secret-file <file>', SECRET_FILE)
    .option('--json', 'print JSON, as returned by the HTTP interface, including the secret')
    .addHelpText(
      'after',
      `${FILTERS}\n\nExample:\n  SECRET=$(dawatch webhooks create https://hooks.example.com/dawatch)`,
    )
    .action(
      async (
        url: string,
        options: Options & { disabled?: boolean; signature: 'v1' | 'v1a'; secretFile?: string },
      ): Promise<void> => {
        const { signature, disabled = false } = options;
        const secret = await readSecret(options.secretFile);
        const webhook: NewWebhook = {
          url,
          signature,
          enabled: !disabled,
          ...filtersOf(options),
          ...secret,
        };
        printSecret(
          options,
          await requestAsAdmin(options, (client) => client.webhooks.create(webhook)),
        );
      },
    );
}

export function addUpdate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('update')))
    .description(
      'Change, disable or enable a webhook. Options that are not given leave their values unchanged.',
    )
    .argument('<id>', ID)
    .option('--url <url>', 'new receiver address')
    .option('--no-metadata', 'remove the metadata filter')
    .option('--enable', 'enable it; missed events are sent by `dawatch webhooks replay`')
    .option('--disable', 'disable it; pending deliveries become dead letters')
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText('after', FILTERS)
    .action(
      async (
        id: string,
        options: Options & { url?: string; enable?: boolean; disable?: boolean },
      ) => {
        const { url, enable = false, disable = false } = options;
        if (enable && disable)
          throw new CommandError('--enable and --disable contradict each other', ExitCode.usage);
        const patch: WebhookPatch = {
          ...(url !== undefined && { url }),
          ...filtersOf(options),
          ...((enable || disable) && { enabled: enable }),
        };
        if (Object.keys(patch).length === 0)
          throw new CommandError('no change was given (see --help)', ExitCode.usage);
        const webhook = await requestAsAdmin(options, (client) =>
          client.webhooks.update(id, patch),
        );
        process.stdout.write(options.json ? `${toJson(webhook)}\n` : webhookText(webhook));
      },
    );
}

export function addRotate(webhooks: Command): void {
  withAdmin(webhooks.command('rotate'))
    .description(
      'Replace the secret of a webhook and print the new one. The old secret also signs for a while.',
    )
    .argument('<id>', ID)
    .addOption(
      durationOption('--keep-old', 'how long the old secret signs as well', {
        least: '0s',
        most: '7d',
        fallback: '1d',
      }),
    )
    .option('--secret-file <file>', SECRET_FILE)
    .option('--json', 'print JSON, as returned by the HTTP interface, including the secret')
    .addHelpText('after', '\nExample:\n  SECRET=$(dawatch webhooks rotate callbacks --keep-old 1h)')
    .action(
      async (
        id: string,
        options: ConnectOptions & { keepOld: number; secretFile?: string; json?: boolean },
      ) => {
        const rotation = {
          keep_old_s: Math.ceil(options.keepOld / 1_000),
          ...(await readSecret(options.secretFile)),
        };
        printSecret(
          options,
          await requestAsAdmin(options, (client) => client.webhooks.rotate(id, rotation)),
        );
      },
    );
}

function withFilters(command: Command): Command {
  return command
    .option(
      '--type <types>',
      'event types: submission.failed, submission.*, alert.*, *; separated by commas, or repeated (default for a new webhook: submission.*)',
      collectTypes,
    )
    .option(
      '--metadata <name=value>',
      'only events about submissions with this metadata; repeated: with all of them',
      collectMetadata,
    )
    .option('--description <text>', 'description, up to 200 characters');
}

function filtersOf({ type, metadata, description }: Options) {
  return {
    ...(type !== undefined && { types: type }),
    ...(metadata !== undefined && { metadata: metadata === false ? null : metadata }),
    ...(description !== undefined && { description }),
  };
}

/** Prints only the secret to stdout, so that a script can capture it. */
function printSecret(options: { json?: boolean }, webhook: WebhookWithSecret): void {
  const { id, url, secret, public_keys } = webhook;
  const keep =
    secret === null
      ? 'receivers verify with this public key'
      : 'save the secret now, it cannot be shown again';
  process.stderr.write(
    `webhook ${escapeText(id)}, ${escapeText(url ?? 'callbacks', 2_100)}: ${keep}\n`,
  );
  process.stdout.write(
    options.json ? `${toJson(webhook)}\n` : `${escapeText(secret ?? public_keys[0] ?? '')}\n`,
  );
}
