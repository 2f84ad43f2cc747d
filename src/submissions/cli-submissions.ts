import { CommandError, ExitCode } from '../cli/exit.ts';
import { readLines } from '../cli/input.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { isObject, tryParse } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import { byName, canonicalId, canRetrack, isFinal, STATUSES, Status } from './submission.ts';
import {
  findWrongTime,
  hasSameOptions,
  newSubmissionIdSchema,
  type TrackItem,
  trackItemSchema,
} from './track-request.ts';

/** A submission to track. `from`: its place in the input, such as "line 7". */
export type GivenSubmission = { from: string; item: TrackItem };

export type CountByStatus = Partial<Record<Status, number>>;

/** `skipped`: the listed submissions that are final already, by status. */
export type GivenSubmissions = { submissions: GivenSubmission[]; skipped: CountByStatus };

export function countStatus(counts: CountByStatus, status: Status): void {
  counts[status] = (counts[status] ?? 0) + 1;
}

const MAX_PROBLEMS = 10;
/** They are kept in memory. */
const MAX_SUBMISSIONS = 1_000_000;
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
  const collected = new Collected(now, retrack);
  if (args.length === 0 || file !== undefined) await readFrom(linesOf(file), collected);
  for (const [index, submission_id] of args.entries())
    collected.add(`id ${index + 1}`, { submission_id });
  return collected.end();
}

/** Reads submissions whose format the first line with content determines. */
async function readFrom(lines: AsyncIterable<string>, given: Collected): Promise<void> {
  let number = 0;
  let areObjects: boolean | undefined;
  for await (const line of lines) {
    number += 1;
    const text = line.trim();
    if (text === '' || text.startsWith('#')) continue;
    const from = `line ${number}`;
    if (areObjects === undefined && text.startsWith('['))
      return given.refuse(
        from,
        'is a list in JSON; write one object per line instead (jq -c ".[]" converts it)',
      );
    areObjects ??= text.startsWith('{');
    if (areObjects) readObject(from, text, given);
    else given.add(from, { submission_id: text });
    if (given.isWrong) return;
  }
}

function readObject(from: string, line: string, given: Collected): void {
  const value = tryParse(line);
  if (isObject(value)) given.add(from, value);
  else
    given.refuse(from, 'is not a JSON object; each line must be one (jq -c . converts other JSON)');
}

class Collected {
  readonly #now: number;
  readonly #retrack: boolean;
  readonly #byId = new Map<string, GivenSubmission>();
  readonly #problems: string[] = [];
  readonly #skipped: CountByStatus = {};

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
    else if (read.kind === 'final') countStatus(this.#skipped, read.status);
    else this.refuse(from, read.problem);
  }

  #collect(from: string, item: TrackItem): void {
    const id = canonicalId(item.submission_id);
    const first = this.#byId.get(id);
    if (first && hasSameOptions(first.item, item)) return;
    if (first) this.refuse(from, `${id} is also in ${first.from}, with other options`);
    else if (this.#byId.size < MAX_SUBMISSIONS) this.#byId.set(id, { from, item });
    else this.refuse(from, `is beyond the first ${MAX_SUBMISSIONS}; divide the file`);
  }

  end(): GivenSubmissions {
    if (this.#problems.length > 0)
      throw new CommandError(
        `nothing was tracked:\n${this.#problems.join('\n')}${this.isWrong ? '\nfurther lines were not read' : ''}`,
        ExitCode.usage,
      );
    if (this.#byId.size + Object.keys(this.#skipped).length === 0)
      throw new CommandError('no ids were given: the file or stdin is empty', ExitCode.usage);
    return { submissions: [...this.#byId.values()], skipped: this.#skipped };
  }
}

type ReadItem =
  | { kind: 'item'; item: TrackItem }
  | { kind: 'final'; status: Status }
  | { kind: 'problem'; problem: string };

/** Validates the fields of a submission. One with a status is from a list. */
function toItem(fields: Record<string, unknown>, now: number, retrack: boolean): ReadItem {
  const problem = (text: string): ReadItem => ({ kind: 'problem', problem: text });
  const isListed = 'status' in fields;
  if (isListed) {
    const status = STATUSES.find((name) => name === fields.status);
    if (!status) return problem(`status: must be one of ${STATUSES.join(', ')}`);
    if (isFinal(status) && !(retrack && canRetrack(status))) return { kind: 'final', status };
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
export async function readIds(args: readonly string[], file?: string): Promise<string[]> {
  const ids: string[] = [];
  if (args.length === 0 || file !== undefined)
    for await (const line of linesOf(file)) if (line.trim() !== '') ids.push(line.trim());
  ids.push(...args);
  for (const [index, id] of ids.entries()) {
    const reason = newSubmissionIdSchema.safeParse(id).error?.issues[0]?.message;
    if (reason !== undefined)
      throw new CommandError(
        `id ${index + 1}: ${JSON.stringify(id.slice(0, 150))}: ${reason}`,
        ExitCode.usage,
      );
  }
  if (ids.length === 0)
    throw new CommandError('no ids were given: the file or stdin is empty', ExitCode.usage);
  return [...new Map(ids.map((id) => [canonicalId(id), id])).values()];
}

/** Returns the lines of a file or of stdin. Throws a CommandError if stdin is a terminal. */
function linesOf(file?: string): AsyncIterable<string> {
  if (file === undefined && process.stdin.isTTY)
    throw new CommandError('give ids as arguments, with --file, or on stdin', ExitCode.usage);
  return readLines(file ?? '-');
}
