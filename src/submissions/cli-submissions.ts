import { CommandError, ExitCode } from '../cli/exit.ts';
import { readText } from '../cli/input.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { isObject } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import {
  byName,
  canonicalId,
  canRetrack,
  isFinal,
  REACHABLE_ID_PATTERN,
  STATUSES,
  Status,
  SUBMISSION_ID_PATTERN,
  UNREACHABLE_ID_REASON,
} from './submission.ts';
import { findWrongTime, hasSameOptions, type TrackItem, trackItemSchema } from './track-request.ts';

/** A submission to track. `from`: its place in the input, such as "line 7". */
export type GivenSubmission = { from: string; item: TrackItem };

/** `skipped`: number of listed submissions that are final already. */
export type GivenSubmissions = { submissions: GivenSubmission[]; skipped: number };

const MAX_PROBLEMS = 10;
/** The fields of a listed submission, and the option of a request that each becomes. */
const LISTED = {
  submission_id: 'submission_id',
  upstream: 'upstream',
  tracked_at: 'tracked_at',
  deadline_at: 'deadline',
  unknown_grace_s: 'unknown_grace_s',
  stuck_after_s: 'stuck_after_s',
  metadata: 'metadata',
  callback_url: 'callback_url',
  ...byName(({ name }) => name),
} as const;

/**
 * Returns the submissions of the arguments, or of a file or stdin: ids or NDJSON, without
 * repetitions. `retrack`: ended ones of a list are not skipped. Throws a CommandError that names
 * the lines.
 */
export async function readSubmissions(
  args: readonly string[],
  { file, retrack = false }: { file?: string; retrack?: boolean },
  now: number,
): Promise<GivenSubmissions> {
  const ids = args.length > 0 ? await readIds(args, undefined) : [];
  const collected = new Collected(now, retrack);
  if (ids.length === 0 || file !== undefined) {
    readFrom(await readInput(file), collected);
  }
  for (const [index, submission_id] of ids.entries())
    collected.add(`id ${index + 1}`, { submission_id });
  return collected.end();
}

/** Reads submissions whose format the first line with content determines. */
function readFrom(text: string, given: Collected): void {
  const lines = text.replaceAll('\r\n', '\n').split('\n');
  const first = lines.findIndex((line) => !isIgnored(line));
  const head = lines[first]?.trimStart() ?? '';
  if (head.startsWith('['))
    given.refuse(
      `line ${first + 1}`,
      'is a list in JSON; write one object per line instead (jq -c ".[]" converts it)',
    );
  else readLines(lines, head.startsWith('{') ? readObject : readId, given);
}

function readLines(lines: string[], read: typeof readId, given: Collected): void {
  for (const [index, line] of lines.entries()) {
    if (!isIgnored(line)) read(`line ${index + 1}`, line, given);
    if (given.isWrong) return;
  }
}

function isIgnored(line: string): boolean {
  const text = line.trim();
  return text === '' || text.startsWith('#');
}

function readId(from: string, line: string, given: Collected): void {
  // Otherwise the lines of a CSV file would count as ids.
  if (line.includes(','))
    given.refuse(from, 'has a comma; options, and an id with a comma, need JSON');
  else if (/^\s*".+"\s*$/.test(line))
    given.refuse(from, 'has an id in quotes; write it without quotes (jq -r does)');
  else given.add(from, { submission_id: line.trim() });
}

function readObject(from: string, line: string, given: Collected): void {
  const value = parsed(line);
  if (isObject(value)) given.add(from, value);
  else
    given.refuse(from, 'is not a JSON object; each line must be one (jq -c . converts other JSON)');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

class Collected {
  readonly #now: number;
  readonly #retrack: boolean;
  readonly #submissions: GivenSubmission[] = [];
  readonly #byId = new Map<string, GivenSubmission>();
  readonly #problems: string[] = [];
  #skipped = 0;

  constructor(now: number, retrack: boolean) {
    this.#now = now;
    this.#retrack = retrack;
  }

  /** Whether there are so many problems that the rest is not read. */
  get isWrong(): boolean {
    return this.#problems.length >= MAX_PROBLEMS;
  }

  refuse(from: string, problem: string): void {
    this.#problems.push(escapeText(`${from}: ${problem}`));
  }

  add(from: string, fields: Record<string, unknown>): void {
    const read = toItem(fields, this.#now, this.#retrack);
    if (read.kind === 'item') this.#collect(from, read.item);
    else if (read.kind === 'final') this.#skipped += 1;
    else this.refuse(from, read.problem);
  }

  #collect(from: string, item: TrackItem): void {
    const id = canonicalId(item.submission_id);
    const first = this.#byId.get(id);
    if (first) {
      if (!hasSameOptions(first.item, item))
        this.refuse(from, `${id} is also in ${first.from}, with other options`);
      return;
    }
    const entry = { from, item };
    this.#byId.set(id, entry);
    this.#submissions.push(entry);
  }

  end(): GivenSubmissions {
    if (this.#problems.length > 0)
      throw new CommandError(
        `nothing was tracked:\n${this.#problems.join('\n')}${this.isWrong ? '\nfurther lines were not read' : ''}`,
        ExitCode.usage,
      );
    if (this.#submissions.length + this.#skipped === 0)
      throw new CommandError('no ids were given: the file or stdin is empty', ExitCode.usage);
    return { submissions: this.#submissions, skipped: this.#skipped };
  }
}

type ReadItem =
  | { kind: 'item'; item: TrackItem }
  | { kind: 'final' }
  | { kind: 'problem'; problem: string };

/** Validates the fields of a submission. One with a status is from a list. */
function toItem(fields: Record<string, unknown>, now: number, retrack: boolean): ReadItem {
  const problem = (text: string): ReadItem => ({ kind: 'problem', problem: text });
  const isListed = 'status' in fields;
  if (isListed) {
    const status = STATUSES.find((name) => name === fields.status);
    if (!status) return problem(`status: must be one of ${STATUSES.join(', ')}`);
    if (isFinal(status) && !(retrack && canRetrack(status))) return { kind: 'final' };
    // The submission is tracked again from now on, with new time limits.
    if (isFinal(status))
      return toItem(
        { ...fields, status: Status.tracking, tracked_at: null, deadline_at: null },
        now,
        retrack,
      );
  }
  const parsed = trackItemSchema.safeParse(isListed ? optionsOf(fields) : fields, {
    error: explainIssue,
  });
  if (!parsed.success) return problem(reasonOf(parsed.error.issues[0], fields));
  const wrongTime = findWrongTime(parsed.data, now);
  return wrongTime
    ? problem(`${wrongTime.field}: ${wrongTime.reason}`)
    : { kind: 'item', item: parsed.data };
}

function optionsOf(fields: Record<string, unknown>): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [field, option] of Object.entries(LISTED)) {
    const value = fields[field];
    if (value !== undefined && value !== null) options[option] = value;
  }
  return options;
}

function reasonOf(
  issue: { path: PropertyKey[]; message: string } | undefined,
  fields: Record<string, unknown>,
): string {
  const path = issue?.path.join('.') ?? '';
  const id = fields.submission_id;
  const subject =
    path === 'submission_id' && typeof id === 'string' ? JSON.stringify(id.slice(0, 150)) : path;
  return subject === '' ? `${issue?.message}` : `${subject}: ${issue?.message}`;
}

/**
 * Returns ids without duplicates; UUIDs ignore case. Throws a CommandError if an id is invalid or
 * there is none.
 */
export async function readIds(
  args: readonly string[],
  file: string | undefined,
): Promise<string[]> {
  const ids =
    args.length > 0 && file === undefined ? [...args] : [...(await nonEmptyLines(file)), ...args];
  const invalid = ids.findIndex((id) => !SUBMISSION_ID_PATTERN.test(id));
  if (invalid >= 0)
    throw new CommandError(
      `id ${invalid + 1}, ${JSON.stringify((ids[invalid] ?? '').slice(0, 150))}, is not a submission id: expected 1 to 128 printable ASCII characters without spaces`,
      ExitCode.usage,
    );
  const unreachable = ids.findIndex((id) => !REACHABLE_ID_PATTERN.test(id));
  if (unreachable >= 0)
    throw new CommandError(`id ${unreachable + 1}: ${UNREACHABLE_ID_REASON}`, ExitCode.usage);
  if (ids.length === 0)
    throw new CommandError('no ids were given: the file or stdin is empty', ExitCode.usage);
  return [...new Map(ids.map((id) => [canonicalId(id), id])).values()];
}

async function nonEmptyLines(file: string | undefined): Promise<string[]> {
  const lines = (await readInput(file)).split('\n').map((line) => line.trim());
  return lines.filter((line) => line !== '');
}

/** Returns the text of a file or of stdin. Throws a CommandError if stdin is a terminal. */
async function readInput(file: string | undefined): Promise<string> {
  if (file === undefined && process.stdin.isTTY)
    throw new CommandError('give ids as arguments, with --file, or on stdin', ExitCode.usage);
  return await readText(file ?? '-');
}
