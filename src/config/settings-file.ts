import { readFileSync } from 'node:fs';
import { isMap, isScalar, isSeq, LineCounter, parse, parseDocument } from 'yaml';

export type SettingsTree = { [key: string]: unknown };

/** A file of settings, or why it can't be used, in a few words. */
export type SettingsFile =
  | { kind: 'read'; tree: SettingsTree; lineOf: (path: readonly string[]) => number | undefined }
  | { kind: 'unusable'; reason: string };

const OPTIONS = { schema: 'core', logLevel: 'error' } as const;

const REASONS: Record<string, string | undefined> = {
  ENOENT: 'there is no such file',
  EISDIR: 'is a folder, not a file',
  EACCES: 'this user may not read it',
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
    if (content === null || content === undefined) return { kind: 'read', tree: {}, lineOf: () => undefined };
    if (!isTree(content)) return { kind: 'unusable', reason: 'expected settings by name, like "server:"' };
    return { kind: 'read', tree: withoutEmpty(content), lineOf: (path) => lineIn(text, path) };
  } catch (error) {
    // The reader shows the line that is wrong, which may hold a key: only what it says before that is passed on.
    return { kind: 'unusable', reason: messageOf(error).split(/[:\n]/)[0] ?? '' };
  }
}

/** Sections whose names are the user's own. */
const NAMED = ['upstreams', 'channels'];

/**
 * A name without a value (a section whose lines are all comments) is as good as not there. It stays as undefined, so that one that is
 * no setting is still found: "api_key:secret" without a space is such a name.
 */
function withoutEmpty(tree: SettingsTree, section = ''): SettingsTree {
  const kept = Object.entries(tree).filter(([, value]) => value !== null || !NAMED.includes(section));
  return Object.fromEntries(
    kept.map(([key, value]) => [
      key,
      value === null ? undefined : isTree(value) ? withoutEmpty(value, section ? '-' : key) : value,
    ]),
  );
}

/** Where it stands, or the section it would be in; from 1. */
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
