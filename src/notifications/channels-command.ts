import type { Command } from 'commander';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestAsOperator,
  withAdmin,
} from '../cli/connect.ts';
import { table, toJson } from '../cli/output.ts';
import { escapeText } from '../lib/text.ts';
import { firstAttempt, printTested } from './deliveries-command.ts';

type Options = ConnectOptions & { json?: boolean };

const MAX_CHARS = 2_100;

export function addChannels(program: Command): void {
  const channels = program
    .command('channels')
    .description(
      'Show and test the channels of the settings: Slack, Discord, Teams, Apprise, e-mail, the queue.',
    );
  addList(channels);
  addTest(channels);
}

function addList(channels: Command): void {
  withAdmin(channels.command('list'))
    .description(
      'List the channels with the events that they receive. Secrets in addresses are masked.',
    )
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .action(async (options: Options) => {
      const all = await requestAsOperator(options, (client) => client.channels.list());
      const rows = all.channels.map(
        ({ name, type, address, routes, deliveries: { waiting, dead }, ...channel }) => {
          const events = routes.map(({ types, metadata }) =>
            [types.join(','), ...(metadata ? [JSON.stringify(metadata)] : [])].join(' '),
          );
          const times = [channel.last_success_at, channel.last_failure_at].map(
            (at) => at ?? 'never',
          );
          const cells = [
            name,
            type,
            address,
            events.join('; ') || 'none',
            String(waiting),
            String(dead),
            ...times,
          ];
          return cells.map((text) => escapeText(text, MAX_CHARS));
        },
      );
      const head = [
        'name',
        'type',
        'address',
        'events',
        'waiting',
        'dead',
        'last success',
        'last failure',
      ];
      process.stdout.write(options.json ? `${toJson(all)}\n` : table([head, ...rows]));
    });
}

function addTest(channels: Command): void {
  withAdmin(channels.command('test'))
    .description('Send a test event to one channel and show the result of the first attempt.')
    .argument('<name>', 'name of the channel, from `dawatch channels list`')
    .option('--json', 'print the delivery as JSON')
    .addHelpText(
      'after',
      '\nExits with 3 if the attempt failed. The delivery is retried like any other.',
    )
    .action(async (name: string, options: Options) => {
      const tested = await requestAsAdmin(options, async (client) =>
        firstAttempt(client, await client.channels.test(name)),
      );
      printTested(tested, options);
    });
}
