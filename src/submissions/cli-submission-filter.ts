import { type Command, InvalidArgumentError, Option } from 'commander';
import { parseSince } from '../cli/since.ts';
import type { SubmissionFilter } from '../client/index.ts';
import { MAX_SEARCH_CHARS } from './search.ts';
import { STATUSES, type Status } from './submission.ts';

/** The values of the options that `withConditions` adds. */
export type Conditions = {
  status?: Status[];
  upstream?: string;
  metadata?: Record<string, string>;
  endedSince?: string;
  endedUntil?: string;
  prefix?: string;
  search?: string;
};

/** The values of the options that `withFilter` adds. */
export type FilterOptions = Conditions & { since?: string; until?: string };

/** Adds the options that select submissions over HTTP. */
export function withFilter(command: Command): Command {
  return withConditions(
    command
      .option(
        '--since <time>',
        'only submissions tracked since: 2h (ago), or a time in ISO 8601',
        parseSince,
      )
      .option('--until <time>', 'only submissions tracked before this time', parseSince),
  );
}

/** Adds the options that select submissions, except by the time of tracking. */
export function withConditions(command: Command): Command {
  return command
    .addOption(
      new Option('--status <statuses>', 'only these statuses, separated by commas or repeated')
        .choices(STATUSES)
        .argParser(collectStatuses),
    )
    .option('--upstream <name>', 'only submissions of this upstream')
    .option(
      '--metadata <name=value>',
      'only submissions with this metadata; repeated: with all of them',
      collectTexts,
    )
    .option(
      '--ended-since <time>',
      'only submissions that became final since this time',
      parseSince,
    )
    .option(
      '--ended-until <time>',
      'only submissions that became final before this time',
      parseSince,
    )
    .option('--prefix <prefix>', 'only ids with this prefix; UUIDs in any case')
    .option(
      '--search <text>',
      'only those with this text in the id or in a value of the metadata, in any case',
      parseSearch,
    );
}

export function toFilter(options: FilterOptions): SubmissionFilter {
  const { status, upstream, metadata, since, until, endedSince, endedUntil, prefix, search } =
    options;
  return {
    ...{ status, upstream, metadata, prefix, search },
    ...{
      tracked_since: since,
      tracked_until: until,
      ended_since: endedSince,
      ended_until: endedUntil,
    },
  };
}

function collectStatuses(text: string, before: Status[] = []): Status[] {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names)
    if (!(STATUSES as readonly string[]).includes(name))
      throw new InvalidArgumentError(
        `${JSON.stringify(name)} is not a status. Expected one of ${STATUSES.join(', ')}.`,
      );
  return [...before, ...(names as Status[])];
}

function parseSearch(text: string): string {
  if (text === '' || text.length > MAX_SEARCH_CHARS)
    throw new InvalidArgumentError(`Expected 1 to ${MAX_SEARCH_CHARS} characters.`);
  return text;
}

/** Collects repeated `name=value` options. The server compares values as text. */
function collectTexts(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [name, value] = [
    text.slice(0, Math.max(0, text.indexOf('='))),
    text.slice(text.indexOf('=') + 1),
  ];
  if (name === '') throw new InvalidArgumentError('Expected name=value, like order=4711.');
  if (Object.hasOwn(before, name))
    throw new InvalidArgumentError(`${JSON.stringify(name)} is given twice.`);
  return Object.fromEntries([...Object.entries(before), [name, value]]);
}
