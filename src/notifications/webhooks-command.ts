import type { Command } from 'commander';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestAsOperator,
  withAdmin,
} from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import {
  collectMetadata,
  collectTypes,
  durationOption,
  parseCount,
  readHeaders,
  readSecret,
} from '../cli/input.ts';
import { coloured, factTable, table, toJson } from '../cli/output.ts';
import type {
  MetadataFilter,
  NewWebhook,
  Webhook,
  WebhookPatch,
  WebhookWithSecret,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { firstAttempt, printTested } from './deliveries-command.ts';
import { CALLBACKS_ID } from './webhook.ts';

type Options = ConnectOptions & { json?: boolean };
type FilterOptions = Options & {
  type?: string[];
  /** false: remove the filter. */
  metadata?: MetadataFilter | false;
  description?: string;
  /** false: remove the headers. */
  headersFile?: string | false;
};

const MAX_CHARS = 2_100;
const ID = 'id of the webhook, from `dawatch webhooks list`';
const SECRET_FILE = 'file with your own secret; - reads stdin (default: a generated secret)';
const FILTERS = `
In --metadata, a value that is a JSON number, true, false or null has that type; any other value, or one in quotes, is text.`;

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'Manage webhooks, which receive events signed according to Standard Webhooks 1.0.',
    );
  addCreate(webhooks);
  addList(webhooks);
  addShow(webhooks);
  addUpdate(webhooks);
  addRotate(webhooks);
  addTest(webhooks);
  addDelete(webhooks);
}

function addList(webhooks: Command): void {
  withAdmin(webhooks.command('list'))
    .description('List webhooks without their secrets, newest first.')
    .option('--limit <count>', 'maximum number of webhooks, 1 to 1000', parseCount, 100)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async ({ limit, ...options }: Options & { limit: number }) => {
      const page = await requestAsOperator(options, (client) => client.webhooks.list({ limit }));
      const rows = page.webhooks.map((webhook) => {
        const { id, url, types, metadata, description } = webhook;
        const filter = metadata ? JSON.stringify(metadata) : '-';
        const cells = [id, url ?? '-', types.join(','), filter, lastDayText(webhook)];
        const shown = cells.map((text) => escapeText(text, MAX_CHARS));
        return [...shown, coloured(webhookState(webhook)), escapeText(description, MAX_CHARS)];
      });
      const head = ['id', 'url', 'types', 'metadata', 'last 24 h', 'state', 'description'];
      process.stdout.write(options.json ? `${toJson(page)}\n` : table([head, ...rows]));
    });
}

function addShow(webhooks: Command): void {
  withAdmin(webhooks.command('show'))
    .description('Show one webhook without its secret.')
    .argument('<id>', ID)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async (id: string, options: Options) => {
      const webhook = await requestAsOperator(options, (client) => client.webhooks.get(id));
      process.stdout.write(options.json ? `${toJson(webhook)}\n` : webhookText(webhook));
    });
}

function addTest(webhooks: Command): void {
  withAdmin(webhooks.command('test'))
    .description('Send a test event to one webhook and show the result of the first attempt.')
    .argument('<id>', ID)
    .option('--url <url>', 'for `callbacks`: the callback address to test')
    .option('--json', 'print the delivery as JSON')
    .addHelpText(
      'after',
      '\nExits with 3 if the attempt failed. The delivery is retried like any other.\n\nExample:\n  dawatch webhooks test callbacks --url https://billing.example.com/hooks',
    )
    .action(async (id: string, { url, ...options }: Options & { url?: string }) => {
      if ((url !== undefined) !== (id === CALLBACKS_ID))
        throw new CommandError(
          url === undefined
            ? `give the address to test with --url`
            : `only ${CALLBACKS_ID} is tested with --url`,
          ExitCode.usage,
        );
      const tested = await requestAsAdmin(options, async (client) => {
        const { webhooks } = client;
        return firstAttempt(
          client,
          await (url === undefined ? webhooks.test(id) : webhooks.testCallback(url)),
        );
      });
      printTested(tested, options);
    });
}

function addDelete(webhooks: Command): void {
  withAdmin(webhooks.command('delete'))
    .description('Delete a webhook and discard its pending deliveries and dead letters.')
    .argument('<id>', ID)
    .action(async (id: string, options: ConnectOptions) => {
      await requestAsAdmin(options, (client) => client.webhooks.delete(id));
      process.stderr.write(`webhook ${escapeText(id)} was deleted\n`);
    });
}

function addCreate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('create')))
    .description('Create a webhook and print its signing secret. The secret cannot be shown again.')
    .argument('<url>', 'receiver address: https://, and public unless the server allows otherwise')
    .option('--disabled', 'create it disabled')
    .option('--secret-file <file>', SECRET_FILE)
    .option('--json', 'print JSON, as returned by the HTTP interface, including the secret')
    .addHelpText(
      'after',
      `${FILTERS}\n\nExample:\n  SECRET=$(dawatch webhooks create https://hooks.example.com/dawatch)`,
    )
    .action(
      async (
        url: string,
        options: FilterOptions & {
          disabled?: boolean;
          secretFile?: string;
        },
      ): Promise<void> => {
        const { disabled = false } = options;
        const secret = await readSecret(options.secretFile);
        const webhook: NewWebhook = {
          url,
          enabled: !disabled,
          ...filtersOf(options),
          ...(await headersOf(options)),
          ...secret,
        };
        printSecret(
          options,
          await requestAsAdmin(options, (client) => client.webhooks.create(webhook)),
        );
      },
    );
}

function addUpdate(webhooks: Command): void {
  withFilters(withAdmin(webhooks.command('update')))
    .description(
      'Change, disable or enable a webhook. Options that are not given leave their values unchanged.',
    )
    .argument('<id>', ID)
    .option('--url <url>', 'new receiver address')
    .option('--no-metadata', 'remove the metadata filter')
    .option('--no-headers-file', 'remove the further headers')
    .option('--enable', 'enable it; `dawatch deliveries replay` sends its dead letters')
    .option('--disable', 'disable it; pending deliveries become dead letters')
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText('after', FILTERS)
    .action(
      async (
        id: string,
        options: FilterOptions & { url?: string; enable?: boolean; disable?: boolean },
      ) => {
        const { url, enable = false, disable = false } = options;
        if (enable && disable)
          throw new CommandError('--enable and --disable contradict each other', ExitCode.usage);
        const patch: WebhookPatch = {
          ...(url !== undefined && { url }),
          ...filtersOf(options),
          ...(await headersOf(options)),
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

function addRotate(webhooks: Command): void {
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
    .option('--description <text>', 'description, up to 200 characters')
    .option(
      '--headers-file <file>',
      'file with further headers of every request, one `Name: value` per line; - reads stdin',
    );
}

async function headersOf({ headersFile }: FilterOptions) {
  if (headersFile === undefined) return {};
  return { headers: headersFile === false ? {} : await readHeaders(headersFile) };
}

function filtersOf({ type, metadata, description }: FilterOptions) {
  return {
    ...(type !== undefined && { types: type }),
    ...(metadata !== undefined && { metadata: metadata === false ? null : metadata }),
    ...(description !== undefined && { description }),
  };
}

/** Prints only the secret to stdout, so that a script can capture it. */
function printSecret(options: { json?: boolean }, webhook: WebhookWithSecret): void {
  const { id, url, secret } = webhook;
  process.stderr.write(
    `webhook ${escapeText(id)}, ${escapeText(url ?? 'callbacks', MAX_CHARS)}: save the secret now, it cannot be shown again\n`,
  );
  process.stdout.write(options.json ? `${toJson(webhook)}\n` : `${escapeText(secret)}\n`);
}

/** Returns the facts about a webhook, one per line. */
export function webhookText(webhook: Webhook): string {
  const facts: [string, string | null][] = [
    ['id', webhook.id],
    ['url', webhook.url ?? 'the callback_url of each submission'],
    ['types', webhook.types.join(', ')],
    ['metadata', webhook.metadata && JSON.stringify(webhook.metadata)],
    ['description', webhook.description || null],
    ['headers', webhook.header_names.join(', ') || null],
    ['state', webhookState(webhook)],
    ['last 24 h', lastDayText(webhook)],
    ['created', webhook.created_at],
    ['updated', webhook.updated_at],
  ];
  return factTable(facts, 4_000);
}

function lastDayText({ last_day: day }: Webhook): string {
  if (day === null) return 'no deliveries';
  const { attempts, success_rate, response_p95_ms: p95 } = day;
  // Never 100 % with a failure.
  const success = `${Math.floor(success_rate * 1_000) / 10} % of ${attempts}`;
  return p95 === null ? `${success}, no response` : `${success}, p95 ${p95} ms`;
}

export function webhookState({ enabled, disabled_reason, failing_since }: Webhook): string {
  if (!enabled) return `disabled (${disabled_reason})`;
  return failing_since === null ? 'enabled' : `failing since ${failing_since}`;
}
