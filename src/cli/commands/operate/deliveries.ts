import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Delivery, DeliveryQuery } from '../../../client/index.ts';
import { DELIVERY_STATES } from '../../../domain/notifications/delivery.ts';
import { escapeText } from '../../../domain/text.ts';
import { type ConnectOptions, requestAsAdmin, withAdmin } from '../../connect.ts';
import { CommandError, ExitCode } from '../../exit.ts';
import { parseSince } from '../../input/since.ts';
import { coloured } from '../../output/colors.ts';
import { parseCount } from '../../output/count.ts';
import { deliveryText, stateOf } from '../../output/delivery-text.ts';
import { toJson } from '../../output/json.ts';
import { table } from '../../output/table.ts';

type Options = ConnectOptions & { json?: boolean };

const COLUMNS = ['id', 'created', 'event', 'submission', 'destination', 'attempts', 'state'];
const DESTINATIONS = 'webhook:<id>, channel:<name>, or callback:https://example.com';

export function addDeliveries(program: Command): void {
  const deliveries = program
    .command('deliveries')
    .description('Show which event was sent where, with every attempt, and send it again.');
  addList(deliveries);
  addShow(deliveries);
  addReplay(deliveries);
}

function addList(deliveries: Command): void {
  withAdmin(deliveries.command('list'))
    .description('Show deliveries, newest first. Ended ones are kept for a while.')
    .option('--webhook <id>', 'only to this webhook')
    .option('--destination <destination>', `only to there: ${DESTINATIONS}`)
    .addOption(new Option('--state <state>', 'only those').choices(DELIVERY_STATES))
    .option('--submission <id>', 'only of events about this submission')
    .option('--event <id>', 'only of this event')
    .option('--limit <count>', 'at most so many, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as the HTTP interface answers')
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
    .description('Show one delivery with every attempt, and what receivers answered.')
    .argument('<id>', 'its number, as `dawatch deliveries list` shows it', parseNumber)
    .option('--json', 'print JSON, as the HTTP interface answers, with the event')
    .action(async (id: number, options: Options) => {
      const delivery = await requestAsAdmin(options, (client) => client.deliveries.get(id));
      process.stdout.write(options.json ? `${toJson(delivery)}\n` : deliveryText(delivery));
    });
}

function addReplay(deliveries: Command): void {
  withAdmin(deliveries.command('replay'))
    .description('Send deliveries again, whatever became of them; or every dead letter of one destination.')
    .argument('[ids...]', 'their numbers, as `dawatch deliveries list` shows them', collectNumbers)
    .option('--destination <destination>', `instead: every dead letter of ${DESTINATIONS}`)
    .option('--since <time>', 'with --destination: of events from then on, 2h (ago) or a time', parseSince)
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch deliveries replay 4711 4712\n  dawatch deliveries replay --destination channel:ops --since 24h',
    )
    .action(async (given: number[] | undefined, options: ConnectOptions & { destination?: string; since?: string }) => {
      const ids = given ?? [];
      const { destination, since } = options;
      if (ids.length > 0 === (destination !== undefined) || (destination === undefined) !== (since === undefined))
        throw new CommandError('give either numbers, or --destination and --since', ExitCode.usage);
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
  return [...shown.map((value) => escapeText(String(value))), coloured(stateOf(delivery))];
}

function collectNumbers(text: string, before: number[] = []): number[] {
  return [...before, parseNumber(text)];
}

function parseNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('a number from `dawatch deliveries list`.');
  return Number(text);
}
