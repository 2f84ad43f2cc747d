import type { Command } from 'commander';
import { firstAttempt, printTested } from '../cli/await-delivery.ts';
import { coloured } from '../cli/colors.ts';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestAsOperator,
  withAdmin,
} from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { toJson } from '../cli/json.ts';
import { parseCount } from '../cli/numbers.ts';
import { parseSince } from '../cli/since.ts';
import { table } from '../cli/table.ts';
import { escapeText } from '../lib/text.ts';
import { CALLBACKS_ID } from './webhook.ts';
import { webhookState, webhookText } from './webhook-text.ts';
import { addCreate, addRotate, addUpdate } from './webhooks-change-command.ts';

type Options = ConnectOptions & { json?: boolean };

const ID = 'id of the webhook, from `dawatch webhooks list`';

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
  addReplay(webhooks);
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
        const cells = [id, url ?? '-', types.join(','), metadata ? JSON.stringify(metadata) : '-'];
        const shown = cells.map((text) => escapeText(text, 2_100));
        return [...shown, coloured(webhookState(webhook)), escapeText(description, 2_100)];
      });
      const head = ['id', 'url', 'types', 'metadata', 'state', 'description'];
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

function addReplay(webhooks: Command): void {
  withAdmin(webhooks.command('replay'))
    .description(
      'Send all dead letters of a webhook again, including events missed while it was disabled. For other destinations: `dawatch deliveries replay`.',
    )
    .argument('<id>', ID)
    .requiredOption(
      '--since <time>',
      'events since this time: 2h (ago), or 2026-01-02T03:04:05Z',
      parseSince,
    )
    .addHelpText(
      'after',
      '\nExample:\n  dawatch webhooks replay wh_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11 --since 24h',
    )
    .action(async (id: string, options: ConnectOptions & { since: string }) => {
      const dead = { destination: `webhook:${id}`, since: options.since };
      const { replayed } = await requestAsAdmin(options, (client) =>
        client.deliveries.replayDead(dead),
      );
      process.stdout.write(`replayed ${replayed}\n`);
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
