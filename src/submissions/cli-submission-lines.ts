import { CommandError, ExitCode } from '../cli/exit.ts';
import { readLines } from '../cli/text-lines.ts';
import { unescapeFormulas } from '../lib/csv.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { isObject } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import { readIds } from './cli-ids.ts';
import { canonicalId, canRetrack, isFinal, STATUSES, Status } from './submission.ts';
import { findWrongTime, hasSameOptions, type TrackItem, trackItemSchema } from './track-request.ts';

/**
 * The fields of one submission in a file, before validation; or the reason why the text cannot be
 * read.
 */
type Fields = { fields: Record<string, unknown> } | { problem: string };

type FileFormat = {
  /**
   * Whether the line has an odd number of quotes, so that a quoted cell continues across line ends.
   */
  togglesQuote: (line: string) => boolean;
  fieldsOf: (text: string) => Fields;
};

const DELIMITERS = [',', ';', '\t'];
const ID_COLUMN = 'submission_id';
/** Columns that only an export of dawatch has. Cells of an export are escaped for spreadsheets. */
const EXPORT_COLUMNS = ['status', 'tracked_at', 'deadline_at', 'changed_at'];
const NUMBER = /^\d+(\.\d+)?$/;

/**
 * Returns the format of a file by its first line with content. `isHeader`: that line contains no
 * submission.
 */
function formatOf(first: string): { format: FileFormat; isHeader: boolean } | { problem: string } {
  if (first.trimStart().startsWith('{')) return { format: NDJSON, isHeader: false };
  if (first.trimStart().startsWith('['))
    return {
      problem: 'is a list in JSON; write one object per line instead (jq -c ".[]" converts it)',
    };
  for (const delimiter of DELIMITERS) {
    const columns = cellsOf(first, delimiter)?.map((name) => name.trim());
    if (columns?.includes(ID_COLUMN)) return csvFormat(columns, delimiter);
  }
  return { format: IDS, isHeader: false };
}

/** One id per line. */
const IDS: FileFormat = {
  togglesQuote: () => false,
  fieldsOf(text) {
    // Otherwise the lines of a CSV file without a header would count as ids.
    if (text.includes(','))
      return {
        problem: `has a comma; CSV needs a header with the column ${ID_COLUMN}, and an id with a comma needs JSON`,
      };
    if (/^\s*".+"\s*$/.test(text))
      return { problem: 'has an id in quotes; write it without quotes (jq -r does)' };
    return { fields: { submission_id: text.trim() } };
  },
};

/** One JSON object per line. */
const NDJSON: FileFormat = {
  togglesQuote: () => false,
  fieldsOf(text) {
    const value = parsed(text);
    return isObject(value)
      ? { fields: value }
      : { problem: 'is not a JSON object; each line must be one (jq -c . converts other JSON)' };
  },
};

/** CSV (RFC 4180) with a header. An empty cell is an absent field. */
function csvFormat(
  columns: readonly string[],
  delimiter: string,
): { format: FileFormat; isHeader: true } | { problem: string } {
  const repeated = columns.find((name, index) => columns.indexOf(name) !== index);
  if (repeated !== undefined)
    return { problem: `has the column ${JSON.stringify(repeated)} twice` };
  const isEscaped = EXPORT_COLUMNS.every((name) => columns.includes(name));
  const fieldsOf = (text: string): Fields => {
    const cells = cellsOf(text, delimiter);
    if (!cells) return { problem: 'has a quote within a cell without quotes' };
    if (cells.length !== columns.length)
      return { problem: `has ${cells.length} cells, and the header has ${columns.length}` };
    const fields = columns.flatMap((name, index): [string, unknown][] => {
      const cell = isEscaped ? unescapeFormulas(cells[index] ?? '') : (cells[index] ?? '').trim();
      return cell === '' ? [] : [[name, cellValue(name, cell)]];
    });
    if (fields.some(([name, value]) => name === 'metadata' && value === undefined))
      return { problem: 'metadata: is not valid JSON' };
    return { fields: Object.fromEntries(fields) };
  };
  return {
    format: { togglesQuote: (line) => line.split('"').length % 2 === 0, fieldsOf },
    isHeader: true,
  };
}

/**
 * Returns the value of a cell; undefined for metadata that is not JSON. A cell that does not have
 * the type of its column stays text, which the validation refuses.
 */
function cellValue(column: string, cell: string): unknown {
  if (column === 'metadata') return parsed(cell);
  if (column === 'retrack' && (cell === 'true' || cell === 'false')) return cell === 'true';
  if (column.endsWith('_s') && NUMBER.test(cell)) return Number(cell);
  return cell;
}

/** Returns the cells of a line; undefined if it is not CSV. */
function cellsOf(text: string, delimiter: string): string[] | undefined {
  const cells: string[] = [];
  for (let at = 0; ; at += 1) {
    let end: number;
    if (text[at] === '"') {
      const close = closingQuote(text, at + 1);
      end = close + 1;
      if (close < 0 || (end < text.length && text[end] !== delimiter)) return undefined;
      cells.push(text.slice(at + 1, close).replaceAll('""', '"'));
    } else {
      const next = text.indexOf(delimiter, at);
      end = next < 0 ? text.length : next;
      const cell = text.slice(at, end);
      if (cell.includes('"')) return undefined;
      cells.push(cell);
    }
    if (end >= text.length) return cells;
    at = end;
  }
}

function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2))
    if (text[at + 1] !== '"') return at;
  return -1;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A submission to track. `from`: its place in the input, such as "line 7". */
export type GivenSubmission = { from: string; item: TrackItem };

/** `skipped`: number of submissions in an export that are final already. */
export type GivenSubmissions = { submissions: GivenSubmission[]; skipped: number };

const MAX_PROBLEMS = 10;
/** Limit for a row of several lines. A longer row indicates a quote that is not closed. */
const MAX_RECORD_CHARS = 1024 * 1024;

/** A submission in an export of dawatch, and the option of a request that each field becomes. */
const EXPORTED = {
  submission_id: 'submission_id',
  upstream: 'upstream',
  tracked_at: 'tracked_at',
  deadline_at: 'deadline',
  unknown_grace_s: 'unknown_grace_s',
  stuck_after_s: 'stuck_after_s',
  metadata: 'metadata',
  callback_url: 'callback_url',
} as const;

/**
 * Returns the submissions of the arguments or, without arguments, of a file or stdin: ids, NDJSON,
 * CSV, or an export. An id that is given again with the same options is omitted. `retrack`:
 * submissions of an export that can be tracked again are not skipped. Throws a CommandError that
 * names the lines if anything is invalid, or if nothing was given.
 */
export async function readSubmissions(
  args: readonly string[],
  { file, retrack = false }: { file?: string; retrack?: boolean },
  now: number,
): Promise<GivenSubmissions> {
  const ids = args.length > 0 ? await readIds(args, undefined) : [];
  const given = new Collected(now, retrack);
  if (ids.length === 0 || file !== undefined) {
    if (file === undefined && process.stdin.isTTY)
      throw new CommandError('give ids as arguments, with --file, or on stdin', ExitCode.usage);
    await readFrom(readLines(file ?? '-'), given);
  }
  for (const [index, submission_id] of ids.entries())
    given.add(`id ${index + 1}`, { submission_id });
  return given.end();
}

async function readFrom(lines: AsyncIterable<string>, given: Collected): Promise<void> {
  let format: FileFormat | undefined;
  let number = 0;
  /** The first lines of a text of several lines. */
  let open: { from: string; lines: string[]; chars: number } | undefined;
  for await (const line of lines) {
    number += 1;
    if (!open && isIgnored(line)) continue;
    const { from, lines: before, chars } = open ?? { from: `line ${number}`, lines: [], chars: 0 };
    if (!format) {
      const found = formatOf(line);
      if ('problem' in found) return given.refuse(from, found.problem);
      format = found.format;
      if (found.isHeader) continue;
    }
    const isOpen = format.togglesQuote(line) !== (open !== undefined);
    before.push(line);
    open =
      isOpen && chars <= MAX_RECORD_CHARS
        ? { from, lines: before, chars: chars + line.length + 1 }
        : undefined;
    if (open) continue;
    const read = format.fieldsOf(before.join('\n'));
    if ('problem' in read) given.refuse(from, read.problem);
    else given.add(from, read.fields);
    if (given.isWrong) return;
  }
  if (open) given.refuse(open.from, 'has a quote that is not closed');
}

function isIgnored(line: string): boolean {
  const text = line.trim();
  return text === '' || text.startsWith('#');
}

/** Validates and collects submissions. */
class Collected {
  readonly #now: number;
  readonly #retrack: boolean;
  readonly #submissions: GivenSubmission[] = [];
  /** By canonical id. */
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
    const given = { from, item };
    this.#byId.set(id, given);
    this.#submissions.push(given);
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

/** Validates the fields of a submission. One with a status is from an export. */
function toItem(fields: Record<string, unknown>, now: number, retrack: boolean): ReadItem {
  const problem = (text: string): ReadItem => ({ kind: 'problem', problem: text });
  const isExported = 'status' in fields;
  if (isExported) {
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
  const parsed = trackItemSchema.safeParse(isExported ? optionsOf(fields) : fields, {
    error: explainIssue,
  });
  if (!parsed.success) return problem(reasonOf(parsed.error.issues[0], fields));
  const wrongTime = findWrongTime(parsed.data, now);
  return wrongTime
    ? problem(`${wrongTime.field}: ${wrongTime.reason}`)
    : { kind: 'item', item: parsed.data };
}

/** Returns the options of an exported submission. */
function optionsOf(fields: Record<string, unknown>): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [field, option] of Object.entries(EXPORTED)) {
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
