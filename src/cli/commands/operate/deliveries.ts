import { type Command, Option } from 'commander';
import type { Delivery, DeliveryQuery } from '../../../client/index.ts';
import { DELIVERY_STATES } from '../../../domain/notifications/delivery.ts';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { numberFrom, parseCount } from '../../input/numbers.ts';
import { parseSince } from '../../input/since.ts';
import { coloured } from '../../output/colors.ts';
import { deliveryState, deliveryText } from '../../output/delivery-text.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

type Options = ConnectOptions & { json?: boolean };

const parseNumber = numberFrom('dawatch deliveries list');

const COLUMNS = ['id', 'created', 'event', 'submission', 'destination', 'attempts', 'state'];
const DESTINATIONS = 'webhook:<id>, channel:<name>, or callback:https://example.com';

export function addDeliveries(program: Command): void {
  const deliveries = program
    .command('deliveries')
    .description('Show deliveries with their attempts, and send them again.');
  addList(deliveries);
  addShow(deliveries);
  addReplay(deliveries);
}

function addList(deliveries: Command): void {
  withAdmin(deliveries.command('list'))
    .description('List deliveries, newest first. Ended deliveries are kept for deliveries.keep_s.')
    .option('--webhook <id>', 'only deliveries to this webhook')
    .option('--destination <destination>', `only this destination: ${DESTINATIONS}`)
    .addOption(new Option('--state <state>', 'only this state').choices(DELIVERY_STATES))
    .option('--submission <id>', 'only events about this submission')
    .option('--event <id>', 'only this event')
    .option('--limit <count>', 'maximum number of deliveries, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText('after', '\nExample:\n  dawatch deliveries list --state dead --limit 100')
    .action(
      async (
        options: Options &
          Pick<DeliveryQuery, 'destination' | 'state' | 'limit'> & {
            webhook?: string;
            submission?: string;
            event?: string;
          },
      ) => {
        const { webhook: webhook_id, submission: submission_id, event: event_id, destination, state, limit } = options;
        const query = { webhook_id, submission_id, event_id, destination, state, limit };
        const given = Object.entries(query).filter(([, value]) => value !== undefined);
        const page = await requestAsAdmin(options, (client) => client.deliveries.list(Object.fromEntries(given)));
        process.stdout.write(options.json ? `${toJson(page)}\n` : table([COLUMNS, ...page.deliveries.map(cells)]));
      },
    );
}

function addShow(deliveries: Command): void {
  withAdmin(deliveries.command('show'))
    .description('Show one delivery with all attempts and the responses of the receiver.')
    .argument('<id>', 'number of the delivery, from `dawatch deliveries list`', parseNumber)
    .option('--json', 'print JSON, as returned by the HTTP interface, including the event')
    .action(async (id: number, options: Options) => {
      const delivery = await requestAsAdmin(options, (client) => client.deliveries.get(id));
      process.stdout.write(options.json ? `${toJson(delivery)}\n` : deliveryText(delivery));
    });
}

function addReplay(deliveries: Command): void {
  withAdmin(deliveries.command('replay'))
    .description('Send deliveries again, whatever their state, or all dead letters of one destination.')
    .argument('[ids...]', 'numbers of deliveries, from `dawatch deliveries list`', collectNumbers)
    .option('--destination <destination>', `all dead letters of this destination: ${DESTINATIONS}`)
    .option('--since <time>', 'with --destination: events since this time; 2h (ago), or a time in ISO 8601', parseSince)
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch deliveries replay 4711 4712\n  dawatch deliveries replay --destination channel:ops --since 24h',
    )
    .action(async (given: number[] | undefined, options: ConnectOptions & { destination?: string; since?: string }) => {
      const ids = given ?? [];
      const { destination, since } = options;
      if (ids.length > 0 === (destination !== undefined) || (destination === undefined) !== (since === undefined))
        throw new CommandError('give either numbers, or both --destination and --since', ExitCode.usage);
      for (const id of ids) {
        const delivery = await requestAsAdmin(options, (client) => client.deliveries.replay(id));
        process.stdout.write(`replayed ${delivery.id}  ${escapeText(delivery.destination)}\n`);
      }
      if (destination === undefined || since === undefined) return;
      const dead = { destination, since };
      const { replayed } = await requestAsAdmin(options, (client) => client.deliveries.replayDead(dead));
      process.stdout.write(`replayed ${replayed}\n`);
    });
}

function cells(delivery: Delivery): string[] {
  const { id, created_at, event_type, submission_id, destination, attempts_made } = delivery;
  const shown = [id, created_at, event_type, submission_id ?? '-', destination, attempts_made];
  return [...shown.map((value) => escapeText(String(value))), coloured(deliveryState(delivery))];
}

function collectNumbers(text: string, before: number[] = []): number[] {
  return [...before, parseNumber(text)];
}
