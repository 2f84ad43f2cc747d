import { type Command, Option } from 'commander';
import type { MetadataFilter, NewWebhook, WebhookPatch, WebhookWithSecret } from '../../../client/index.ts';
import { SIGNATURES } from '../../../domain/notifications/webhook.ts';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { durationOption } from '../../input/duration.ts';
import { collectMetadata, collectTypes } from '../../input/event-filter.ts';
import { readSecret } from '../../input/secret-file.ts';
import { toJson } from '../../output/json.ts';
import { webhookText } from '../../output/webhook-text.ts';

type Options = ConnectOptions & {
  type?: string[];
  /** false: without a filter. */
  metadata?: MetadataFilter | false;
  description?: string;
  json?: boolean;
};

const ID = 'its id, as `dawatch webhooks list` shows it';
const SECRET_FILE = 'a secret of your own, from a file; - is stdin (default: one is made)';
const FILTERS = `
--metadata team=billing wants the text; 5, true and null are what they say, "5" in quotes is the text.`;

export function addCreate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('create')))
    .description('Have events sent to an address, and print the secret they are signed with, this once.')
    .argument('<url>', 'where they are sent: https://, and no private address unless the server allows it')
    .option('--disabled', 'send nothing yet')
    .addOption(
      new Option('--signature <kind>', 'v1: shared secret; v1a: ed25519, and the public key is printed')
        .choices(SIGNATURES)
        .default('v1'),
    )
    .option('--secret-file <file>', SECRET_FILE)
    .option('--json', 'print JSON, as the HTTP interface answers, with the secret')
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
        const webhook: NewWebhook = { url, signature, enabled: !disabled, ...filtersOf(options), ...secret };
        printSecret(options, await requestAsAdmin(options, (client) => client.webhooks.create(webhook)));
      },
    );
}

export function addUpdate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('update')))
    .description('Change a webhook, disable it, enable it again. What is not given stays.')
    .argument('<id>', ID)
    .option('--url <url>', 'where events are sent from now on')
    .option('--no-metadata', 'take the filter on metadata away')
    .option('--enable', 'send again; what it missed meanwhile: `dawatch webhooks replay`')
    .option('--disable', 'send nothing; what waits becomes a dead letter')
    .option('--json', 'print JSON, as the HTTP interface answers')
    .addHelpText('after', FILTERS)
    .action(async (id: string, options: Options & { url?: string; enable?: boolean; disable?: boolean }) => {
      const { url, enable = false, disable = false } = options;
      if (enable && disable) throw new CommandError('--enable and --disable contradict each other', ExitCode.usage);
      const patch: WebhookPatch = {
        ...(url !== undefined && { url }),
        ...filtersOf(options),
        ...((enable || disable) && { enabled: enable }),
      };
      if (Object.keys(patch).length === 0)
        throw new CommandError('nothing to change was given (--help shows what can be)', ExitCode.usage);
      const webhook = await requestAsAdmin(options, (client) => client.webhooks.update(id, patch));
      process.stdout.write(options.json ? `${toJson(webhook)}\n` : webhookText(webhook));
    });
}

export function addRotate(webhooks: Command): void {
  withAdmin(webhooks.command('rotate'))
    .description('Give a webhook another secret and print it, this once. For a while the old one signs too.')
    .argument('<id>', ID)
    .addOption(durationOption('--keep-old', 'for so long both sign', { least: '0s', most: '7d', fallback: '1d' }))
    .option('--secret-file <file>', SECRET_FILE)
    .option('--json', 'print JSON, as the HTTP interface answers, with the secret')
    .addHelpText('after', '\nExample:\n  SECRET=$(dawatch webhooks rotate callbacks --keep-old 1h)')
    .action(async (id: string, options: ConnectOptions & { keepOld: number; secretFile?: string; json?: boolean }) => {
      const rotation = {
        keep_old_s: Math.ceil(options.keepOld / 1_000),
        ...(await readSecret(options.secretFile)),
      };
      printSecret(options, await requestAsAdmin(options, (client) => client.webhooks.rotate(id, rotation)));
    });
}

function withFilters(command: Command): Command {
  return command
    .option(
      '--type <types>',
      'which events: submission.failed, submission.*, alert.*, *; with commas, or repeated (a new webhook: submission.*)',
      collectTypes,
    )
    .option('--metadata <name=value>', 'only about submissions with this metadata; repeated: with all', collectMetadata)
    .option('--description <text>', 'for people, up to 200 characters');
}

function filtersOf({ type, metadata, description }: Options) {
  return {
    ...(type !== undefined && { types: type }),
    ...(metadata !== undefined && { metadata: metadata === false ? null : metadata }),
    ...(description !== undefined && { description }),
  };
}

/** What the receiver needs goes to stdout alone. */
function printSecret(options: { json?: boolean }, webhook: WebhookWithSecret): void {
  const { id, url, secret, public_keys } = webhook;
  const keep = secret === null ? 'receivers verify with this public key' : 'keep the secret now, it is not shown again';
  process.stderr.write(`webhook ${escapeText(id)}, ${escapeText(url ?? 'callbacks', 2_100)}: ${keep}\n`);
  process.stdout.write(options.json ? `${toJson(webhook)}\n` : `${escapeText(secret ?? public_keys[0] ?? '')}\n`);
}
