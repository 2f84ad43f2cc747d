import type { Command } from 'commander';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../cli/connect.ts';
import { ExitCode } from '../cli/exit.ts';
import { collectMetadata, collectTypes, parseCount } from '../cli/input.ts';
import { coloured, table, toJson } from '../cli/output.ts';
import type {
  DawatchClient,
  Delivery,
  DeliveryDetails,
  MetadataFilter,
  NewWebhook,
  Webhook,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

type Options = ConnectOptions & { json?: boolean };

const MAX_CHARS = 2_100;
const ID = 'id of the webhook, from `dawatch webhooks list`';

export function addWebhooks(program: Command): void {
  const webhooks = program
    .command('webhooks')
    .description(
      'Manage webhooks, which receive events signed according to Standard Webhooks 1.0.',
    );
  addCreate(webhooks);
  addList(webhooks);
  addTest(webhooks);
  addDelete(webhooks);
}

function addCreate(webhooks: Command): void {
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
        options: Options & { type?: string[]; metadata?: MetadataFilter; description?: string },
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

function addList(webhooks: Command): void {
  withAdmin(webhooks.command('list'))
    .description('List webhooks without their secrets, newest first.')
    .option('--limit <count>', 'maximum number of webhooks, 1 to 1000', parseCount, 100)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async ({ limit, ...options }: Options & { limit: number }) => {
      const page = await requestAsAdmin(options, (client) => client.webhooks.list({ limit }));
      const rows = page.webhooks.map((webhook) => {
        const { id, url, types, metadata, description } = webhook;
        const filter = metadata ? JSON.stringify(metadata) : '-';
        const cells = [id, url ?? '-', types.join(','), filter, lastDayText(webhook)];
        const texts = cells.map((text) => escapeText(text, MAX_CHARS));
        return [...texts, coloured(webhookState(webhook)), escapeText(description, MAX_CHARS)];
      });
      const head = ['id', 'url', 'types', 'metadata', 'last 24 h', 'state', 'description'];
      process.stdout.write(options.json ? `${toJson(page)}\n` : table([head, ...rows]));
    });
}

function addTest(webhooks: Command): void {
  withAdmin(webhooks.command('test'))
    .description('Send a test event to one webhook and show the result of the first attempt.')
    .argument('<id>', ID)
    .option('--json', 'print the delivery as JSON')
    .addHelpText(
      'after',
      '\nExits with 3 if the attempt failed. The delivery is retried like any other.',
    )
    .action(async (id: string, options: Options) => {
      const delivery = await requestAsAdmin(options, async (client) =>
        firstAttempt(client, await client.webhooks.test(id)),
      );
      process.stdout.write(options.json ? `${toJson(delivery)}\n` : deliveryText(delivery));
      if (delivery.state !== 'delivered') process.exitCode = ExitCode.notFinalized;
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

function lastDayText({ last_day: day }: Webhook): string {
  if (day === null) return 'no deliveries';
  const { attempts, success_rate, response_p95_ms: p95 } = day;
  // Never 100 % with a failure.
  const success = `${Math.floor(success_rate * 1_000) / 10} % of ${attempts}`;
  return p95 === null ? `${success}, no response` : `${success}, p95 ${p95} ms`;
}

function webhookState({ enabled, disabled_reason, failing_since }: Webhook): string {
  if (!enabled) return `disabled (${disabled_reason})`;
  return failing_since === null ? 'enabled' : `failing since ${failing_since}`;
}

/** The server aborts an attempt after 15 s. */
const ATTEMPT_TIMEOUT_MS = 20_000;
const PAUSE_MS = 100;

async function firstAttempt(client: DawatchClient, { id }: Delivery): Promise<DeliveryDetails> {
  const endsAt = performance.now() + ATTEMPT_TIMEOUT_MS;
  for (;;) {
    const delivery = await client.deliveries.get(id);
    const { attempts, state } = delivery;
    if (attempts.length > 0 || state !== 'waiting' || performance.now() > endsAt) return delivery;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

const MAX_RESPONSE_CHARS = 5_000;

function deliveryText(delivery: DeliveryDetails): string {
  const { state, dead_reason, next_at } = delivery;
  const isWaiting = state === 'waiting' && next_at !== null;
  const reason = dead_reason ? ` (${dead_reason})` : '';
  const facts = [
    ['delivery', escapeText(String(delivery.id))],
    ['state', coloured(isWaiting ? `waiting until ${next_at}` : state + reason)],
  ];
  const attempts = delivery.attempts.map(({ at, duration_ms, http_status, error, response }) => {
    const line = [
      `  ${at}`,
      ...(http_status === null ? [] : [`HTTP ${http_status}`]),
      `${Math.round(duration_ms)} ms`,
      error ?? 'delivered',
    ].map((text) => escapeText(text));
    const body = response ? `    ${escapeText(response, MAX_RESPONSE_CHARS)}\n` : '';
    return `${line.join('  ')}\n${body}`;
  });
  return `${table(facts)}attempts${attempts.length === 0 ? '    none' : ''}\n${attempts.join('')}`;
}
