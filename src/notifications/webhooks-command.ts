import type { Command } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { collectMetadata, collectTypes } from '../cli/input.ts';
import { toJson } from '../cli/output.ts';
import type { MetadataFilter, NewWebhook } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

const MAX_CHARS = 2_100;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'Create a webhook, which receives events signed according to Standard Webhooks 1.0.',
    );
  withAdmin(webhooks.command('create'))
    .description('Create a webhook and print its signing secret. The secret cannot be shown again.')
    .argument('<url>', 'receiver address: https://, and public unless the server allows otherwise')
    .option(
      '--type <types>',
      'event types: submission.failed, submission.*, alert.*, *; separated by commas, or repeated (default: submission.*)',
      collectTypes,
    )
    .option(
      '--metadata <name=value>',
      'only events about submissions with this metadata; repeated: with all of them',
      collectMetadata,
    )
    .option('--description <text>', 'description, up to 200 characters')
    .option('--json', 'print JSON, as returned by the HTTP interface, including the secret')
    .addHelpText(
      'after',
      `
In --metadata, a value that is a JSON number, true, false or null has that type; any other value, or one in quotes, is text.

Example:
  SECRET=$(dawatch webhooks create https://hooks.example.com/dawatch)`,
    )
    .action(
      async (
        url: string,
        options: ConnectOptions & {
          json?: boolean;
          type?: string[];
          metadata?: MetadataFilter;
          description?: string;
        },
      ) => {
        const { type: types, metadata, description } = options;
        const webhook: NewWebhook = {
          url,
          ...(types !== undefined && { types }),
          ...(metadata !== undefined && { metadata }),
          ...(description !== undefined && { description }),
        };
        const created = await requestAsAdmin(options, (client) => client.webhooks.create(webhook));
        // Only the secret is on stdout, so that a script can capture it.
        process.stderr.write(
          `webhook ${escapeText(created.id)}, ${escapeText(url, MAX_CHARS)}: save the secret now, it cannot be shown again\n`,
        );
        process.stdout.write(
          options.json ? `${toJson(created)}\n` : `${escapeText(created.secret)}\n`,
        );
      },
    );
}
