import { createReadStream } from 'node:fs';
import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import type { MetadataFilter } from '../client/index.ts';
import { durationMs } from '../lib/clock.ts';
import { DEEP_METADATA_REASON, isObject, isTooDeep, tryParse } from '../lib/json.ts';
import { CommandError, ExitCode } from './exit.ts';

/** Parses a whole number. The server checks its range. */
export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

const MAX_MS = 366 * 86_400_000;

/** Parses "90s", "10m", "24h", "7d" or "250ms" into milliseconds, at most 366 days. */
export function parseDuration(text: string): number {
  if (text === '0') return 0;
  const ms = durationMs(text);
  if (ms === undefined)
    throw new InvalidArgumentError('Expected a duration like 90s, 10m, 24h or 7d.');
  if (ms > MAX_MS) throw new InvalidArgumentError('Expected at most 366d.');
  return ms;
}

const timeSchema = z.iso.datetime({ offset: true });

/** Returns an ISO 8601 time for a duration such as "2h" (ago) or for a time with its zone. */
export function parseSince(text: string): string {
  const ms = durationOrTime(text);
  return ms === undefined ? text : new Date(Date.now() - ms).toISOString();
}

/** Parses "2h" after a start, or a fixed time with its zone. Returns the end by start, epoch ms. */
export function parseAhead(text: string): (start: number) => number {
  const ms = durationOrTime(text);
  return ms === undefined ? () => Date.parse(text) : (start) => start + ms;
}

/** Returns a duration in milliseconds; undefined for a time with its zone. */
function durationOrTime(text: string): number | undefined {
  if (timeSchema.safeParse(text).success) return undefined;
  if (durationMs(text) !== undefined) return parseDuration(text);
  throw new InvalidArgumentError(
    'Expected a duration like 2h, or a time like 2026-01-02T03:04:05Z.',
  );
}

export function collectTypes(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',')];
}

/** A value that is a JSON number, true, false, null or a quoted string has that type. */
export function collectMetadata(text: string, before: MetadataFilter = {}): MetadataFilter {
  const [name, value] = pairIn(text, before);
  return Object.fromEntries([...Object.entries(before), [name, toValue(value)]]);
}

/** Splits `name=value`, whose name is not yet in `before`. */
export function pairIn(text: string, before: object): [name: string, value: string] {
  const name = text.slice(0, Math.max(0, text.indexOf('=')));
  // JSON.parse on the server drops __proto__, so that the filter would be lost.
  if (name === '' || name === '__proto__')
    throw new InvalidArgumentError('Expected name=value, like team=billing.');
  if (Object.hasOwn(before, name))
    throw new InvalidArgumentError(`${JSON.stringify(name)} is given twice.`);
  return [name, text.slice(name.length + 1)];
}

function toValue(text: string): string | number | boolean | null {
  const value = tryParse(text);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  // 1e999 and integers beyond the safe range would change their value, so they stay text.
  const isExact =
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isExact ? value : text;
}

export function parseObject(text: string): Record<string, unknown> {
  const value = tryParse(text);
  if (!isObject(value)) throw new InvalidArgumentError('Expected a JSON object.');
  if (isTooDeep(value)) throw new InvalidArgumentError(`${DEEP_METADATA_REASON}.`);
  return { ...value };
}

/** Of a text, or of a line: a request to the server has at most this. */
const MAX_CHARS = 8 * 1024 * 1024;

/** Reads a file, or stdin for "-". Throws a CommandError as readLines, or if it is too long. */
export async function readText(file: string): Promise<string> {
  let text = '';
  for await (const piece of piecesOf(file)) text = bounded(text + piece, file);
  return text;
}

/**
 * Reads the lines of a file, or of stdin for "-", without a byte order mark. Throws a CommandError
 * if it is unreadable, not UTF-8, or has a line that is too long.
 */
export async function* readLines(file: string): AsyncGenerator<string> {
  let rest = '';
  for await (const piece of piecesOf(file)) {
    const lines = (rest + piece).split('\n');
    rest = bounded(lines.pop() ?? '', file);
    yield* lines;
  }
  yield rest;
}

function bounded(text: string, file: string): string {
  if (text.length <= MAX_CHARS) return text;
  throw new CommandError(
    `${nameOf(file)} or a line of it has more than ${MAX_CHARS} characters`,
    ExitCode.usage,
  );
}

const nameOf = (file: string) => (file === '-' ? 'stdin' : file);

async function* piecesOf(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  try {
    for await (const bytes of file === '-' ? process.stdin : createReadStream(file))
      yield decoder.decode(bytes, { stream: true });
    yield decoder.decode();
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    const isWrong = error instanceof TypeError;
    throw new CommandError(
      isWrong ? `${nameOf(file)} is not text in UTF-8` : `cannot read ${nameOf(file)}: ${reason}`,
      ExitCode.usage,
    );
  }
}
