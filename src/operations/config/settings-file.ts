import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, parse, parseDocument } from 'yaml';

export type SettingsTree = { [key: string]: unknown };

/**
 * The content of a settings file, or the reason why it is unusable. `lineOf` returns the line of a
 * setting, from 1.
 */
export type SettingsFile =
  | { kind: 'read'; tree: SettingsTree; lineOf: (path: readonly string[]) => number | undefined }
  | { kind: 'unusable'; reason: string };

const OPTIONS = { schema: 'core', logLevel: 'error' } as const;

const REASONS: Record<string, string | undefined> = {
  ENOENT: 'the file does not exist',
  EISDIR: 'is a directory, not a file',
  EACCES: 'no permission to read the file',
};

export function readSettings(file: string): SettingsFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return { kind: 'unusable', reason: REASONS[code] ?? messageOf(error) };
  }
  try {
    const content: unknown = parse(text, OPTIONS);
    if (content === null || content === undefined)
      return { kind: 'read', tree: {}, lineOf: () => undefined };
    if (!isTree(content))
      return { kind: 'unusable', reason: 'expected named settings, such as "server:"' };
    return { kind: 'read', tree: withoutEmpty(content), lineOf: (path) => lineIn(text, path) };
  } catch (error) {
    // The parser quotes the invalid line after a colon. The line may contain a key, so the quote is
    // removed.
    return { kind: 'unusable', reason: messageOf(error).split(/[:\n]/)[0] ?? '' };
  }
}

/** Sections whose keys are chosen by the operator. */
const NAMED = ['upstreams', 'channels'];

/**
 * Replaces empty values by undefined, such as a section whose lines are all comments. The keys
 * remain, so that unknown ones are still reported: "api_key:secret" without a space is parsed as
 * such a key.
 */
function withoutEmpty(tree: SettingsTree, section = ''): SettingsTree {
  const kept = Object.entries(tree).filter(
    ([, value]) => value !== null || !NAMED.includes(section),
  );
  return Object.fromEntries(
    kept.map(([key, value]) => [
      key,
      value === null ? undefined : isTree(value) ? withoutEmpty(value, section ? '-' : key) : value,
    ]),
  );
}

/** Returns the line of a setting, or of the section that would contain it, from 1. */
function lineIn(text: string, path: readonly string[]): number | undefined {
  const lineCounter = new LineCounter();
  let node: unknown = parseDocument(text, { ...OPTIONS, lineCounter }).contents;
  let offset: number | undefined;
  for (const name of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === name);
      if (!pair) break;
      if (isScalar(pair.key)) offset = pair.key.range?.[0];
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(name)];
      if (isScalar(node) || isMap(node) || isSeq(node)) offset = node.range?.[0];
    } else break;
  }
  return offset === undefined ? undefined : lineCounter.linePos(offset).line;
}

export function isTree(value: unknown): value is SettingsTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
