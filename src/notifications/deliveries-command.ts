import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  type ConnectOptions,
  requestAsAdmin,
  requestAsOperator,
  withAdmin,
} from '../cli/connect.ts';
import { CommandError, ExitCode } from '../cli/exit.ts';
import { collectTypes, numberFrom, parseCount, parseSince } from '../cli/input.ts';
import { coloured, factTable, table, toJson } from '../cli/output.ts';
import type {
  DawatchClient,
  Delivery,
  DeliveryDetails,
  DeliveryPage,
  DeliveryQuery,
} from '../client/index.ts';
import { escapeText } from '../lib/text.ts';
import { DELIVERY_FILTERS, type DeliveryStateFilter } from './delivery.ts';

type Options = ConnectOptions & { json?: boolean };
type ListOptions = Options & {
  webhook?: string;
  destination?: string;
  state?: DeliveryStateFilter[];
  submission?: string;
  event?: string;
  type?: string[];
  since?: string;
  until?: string;
  limit: number;
};

type ReplayOptions = ConnectOptions & {
  destination?: string;
  since?: string;
  until?: string;
  type?: string[];
  submission?: string;
  dryRun?: boolean;
};

const parseNumber = numberFrom('dawatch deliveries list');

const COLUMNS = [
  'id',
  'created',
  'event',
  'submission',
  'destination',
  'attempts',
  'last response',
  'state',
];
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
    .addOption(
      new Option('--state <states>', 'only these states, separated by commas or repeated')
        .choices(DELIVERY_FILTERS)
        .argParser(collectStates),
    )
    .option('--submission <id>', 'only events about this submission')
    .option('--event <id>', 'only this event')
    .option(
      '--type <types>',
      'only these event types: submission.failed, submission.*; separated by commas, or repeated',
      collectTypes,
    )
    .option(
      '--since <time>',
      'only events since this time: 2h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'only events before this time', parseSince)
    .option('--limit <count>', 'maximum number of deliveries, 1 to 1000', parseCount, 20)
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText(
      'after',
      `
Examples:
  dawatch deliveries list --state dead --limit 100
  dawatch deliveries list --type submission.failed --since 24h`,
    )
    .action(async (options: ListOptions) => {
      const {
        webhook: webhook_id,
        submission: submission_id,
        event: event_id,
        type: event_type,
      } = options;
      const { destination, state, since, until, limit } = options;
      const query = {
        webhook_id,
        submission_id,
        event_id,
        event_type,
        destination,
        state,
        since,
        until,
      };
      const given = Object.fromEntries(
        Object.entries(query).filter(([, value]) => value !== undefined),
      );
      const page = await requestAsOperator(options, (client) => readPages(client, given, limit));
      process.stdout.write(
        options.json ? `${toJson(page)}\n` : table([COLUMNS, ...page.deliveries.map(cells)]),
      );
    });
}

/**
 * Reads pages until there are `limit` deliveries, because a page may be short. The server checks
 * the limit.
 */
async function readPages(
  client: DawatchClient,
  query: DeliveryQuery,
  limit: number,
): Promise<DeliveryPage> {
  const page = await client.deliveries.list({ ...query, limit });
  while (page.next_cursor !== null && page.deliveries.length < limit) {
    const rest = limit - page.deliveries.length;
    const next = await client.deliveries.list({ ...query, limit: rest, cursor: page.next_cursor });
    page.deliveries.push(...next.deliveries);
    page.next_cursor = next.next_cursor;
  }
  return page;
}

function addShow(deliveries: Command): void {
  withAdmin(deliveries.command('show'))
    .description('Show one delivery with all attempts and the responses of the receiver.')
    .argument('<id>', 'number of the delivery, from `dawatch deliveries list`', parseNumber)
    .option('--json', 'print JSON, as returned by the HTTP interface, including the event')
    .action(async (id: number, options: Options) => {
      const delivery = await requestAsOperator(options, (client) => client.deliveries.get(id));
      process.stdout.write(options.json ? `${toJson(delivery)}\n` : deliveryText(delivery));
    });
}

function addReplay(deliveries: Command): void {
  withAdmin(deliveries.command('replay'))
    .description(
      'Send deliveries again, whatever their state, or all dead letters of one destination.',
    )
    .argument('[ids...]', 'numbers of deliveries, from `dawatch deliveries list`', collectNumbers)
    .option('--destination <destination>', `all dead letters of this destination: ${DESTINATIONS}`)
    .option(
      '--since <time>',
      'with --destination: events since this time; 2h (ago), or a time in ISO 8601',
      parseSince,
    )
    .option('--until <time>', 'with --destination: only events before this time', parseSince)
    .option('--type <types>', 'with --destination: only these event types', collectTypes)
    .option('--submission <id>', 'with --destination: only events about this submission')
    .option('--dry-run', 'with --destination: only count')
    .addHelpText(
      'after',
      '\nExamples:\n  dawatch deliveries replay 4711 4712\n  dawatch deliveries replay --destination channel:ops --since 24h --dry-run\n\nThe dead letters of a webhook include the events that it missed while it was disabled.',
    )
    .action(async (given: number[] | undefined, options: ReplayOptions) => {
      const ids = given ?? [];
      const {
        destination,
        since,
        until,
        type: event_types,
        submission: submission_id,
        dryRun: dry_run,
      } = options;
      const only = Object.entries({ until, event_types, submission_id, dry_run }).filter(
        ([, value]) => value !== undefined,
      );
      if (
        ids.length > 0 === (destination !== undefined) ||
        (destination === undefined) !== (since === undefined) ||
        (destination === undefined && only.length > 0)
      )
        throw new CommandError(
          'give either numbers, or both --destination and --since',
          ExitCode.usage,
        );
      for (const id of ids) {
        const delivery = await requestAsAdmin(options, (client) => client.deliveries.replay(id));
        process.stdout.write(`replayed ${delivery.id}  ${escapeText(delivery.destination)}\n`);
      }
      if (destination === undefined || since === undefined) return;
      const dead = { destination, since, ...Object.fromEntries(only) };
      const { replayed } = await requestAsAdmin(options, (client) =>
        client.deliveries.replayDead(dead),
      );
      process.stdout.write(`${dry_run ? 'would replay' : 'replayed'} ${replayed}\n`);
    });
}

function cells(delivery: Delivery): string[] {
  const {
    id,
    created_at,
    event_type,
    submission_id,
    destination,
    attempts_made,
    last_http_status,
    last_error,
  } = delivery;
  const last = last_http_status === null ? (last_error ?? '-') : `HTTP ${last_http_status}`;
  const shown = [
    id,
    created_at,
    event_type,
    submission_id ?? '-',
    destination,
    attempts_made,
    last,
  ];
  return [...shown.map((value) => escapeText(String(value))), coloured(deliveryState(delivery))];
}

function collectStates(text: string, before: DeliveryStateFilter[] = []): DeliveryStateFilter[] {
  const states = text.split(',').map((name) => name.trim());
  for (const name of states)
    if (!(DELIVERY_FILTERS as readonly string[]).includes(name))
      throw new InvalidArgumentError(
        `${JSON.stringify(name)} is not a state. Allowed choices are ${DELIVERY_FILTERS.join(', ')}.`,
      );
  return [...before, ...(states as DeliveryStateFilter[])];
}

function collectNumbers(text: string, before: number[] = []): number[] {
  return [...before, parseNumber(text)];
}

/** The server aborts an attempt after 15 s. */
const ATTEMPT_TIMEOUT_MS = 20_000;
const PAUSE_MS = 100;

/** Waits up to 20 s for the first attempt of a delivery, and returns the delivery. */
export async function firstAttempt(
  client: DawatchClient,
  { id }: Delivery,
): Promise<DeliveryDetails> {
  const endsAt = performance.now() + ATTEMPT_TIMEOUT_MS;
  for (;;) {
    const shown = await client.deliveries.get(id);
    if (shown.attempts.length > 0 || shown.state !== 'waiting' || performance.now() > endsAt)
      return shown;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** Prints the result of a test event, and sets the exit code to 3 unless it was delivered. */
export function printTested(delivery: DeliveryDetails, { json }: { json?: boolean }): void {
  process.stdout.write(json ? `${toJson(delivery)}\n` : deliveryText(delivery));
  if (delivery.state !== 'delivered') process.exitCode = ExitCode.notFinalized;
}

/** Shows the complete stored response. */
const MAX_RESPONSE_CHARS = 5_000;

/**
 * Returns the fields of a delivery and one line per attempt, followed by the response of the
 * receiver.
 */
export function deliveryText(delivery: DeliveryDetails): string {
  const facts: [string, string | null][] = [
    ['delivery', String(delivery.id)],
    ['event', `${delivery.event_id}  ${delivery.event_type}`],
    ['submission', delivery.submission_id],
    ['destination', delivery.destination],
    ['state', deliveryState(delivery)],
    ['created', delivery.created_at],
    ['ended', delivery.ended_at],
  ];
  const head = factTable(facts);
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
  return `${head}attempts${attempts.length === 0 ? '    none' : ''}\n${attempts.join('')}`;
}

export function deliveryState({ state, dead_reason, next_at }: Delivery): string {
  if (state === 'waiting' && next_at !== null) return `waiting until ${next_at}`;
  return dead_reason === null ? state : `${state} (${dead_reason})`;
}
