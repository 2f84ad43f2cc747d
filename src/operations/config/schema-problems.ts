import { homedir } from 'node:os';
import type { z } from 'zod';
import { explainIssue } from '../../lib/explain-issue.ts';

/** A problem of the value at `path`, such as "must be a number, not a string". */
export type SchemaProblem = { path: string[]; text: string };

export type Checked<T> =
  | { kind: 'valid'; data: T }
  | { kind: 'invalid'; problems: SchemaProblem[] };

const MAX_SHOWN_NAME = 40;

/** Messages never quote a value, which may be a misplaced secret. */
export function checkWith<T extends z.ZodType>(schema: T, input: unknown): Checked<z.output<T>> {
  const parsed = schema.safeParse(input, {
    error: (issue) =>
      explainIssue(issue.code === 'invalid_value' ? { ...issue, input: undefined } : issue),
  });
  if (parsed.success) return { kind: 'valid', data: parsed.data };
  const problems = parsed.error.issues.flatMap((issue) => {
    const path = issue.path.map(String);
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({
        path: [...path, displayName(key)],
        text: 'is not a setting',
      }));
    const { message } = (issue.code === 'invalid_key' && issue.issues[0]) || issue;
    return [{ path, text: message }];
  });
  return { kind: 'invalid', problems };
}

/** For an unusual key: a line without a space after its colon is a key, and may be a secret. */
function displayName(key: string): string {
  return /^[a-z_]+$/i.test(key) && key.length <= MAX_SHOWN_NAME ? key : '(hidden)';
}

/** A whole value, or in an address a part, that a shell or a template was to replace. */
const PLACEHOLDER =
  /^(?:\w+ )?(?:\$[A-Z_][A-Z\d_]*|\$\{.*\}|\{\{.*\}\}|%\w+%|!\w+ .*)$|^\w+:\/\/.*\$\{/s;

/**
 * Returns what to write instead; undefined: nothing is wrong. `docker --env-file` and templates
 * keep quotes, and only a shell replaces `~`. `isSecret`: the value is not shown. `instead`: what
 * else sets it.
 */
export function mistypedReason(
  text: string,
  { isPath, isSecret, instead }: { isPath: boolean; isSecret: boolean; instead?: string },
): string | undefined {
  // An address may contain a password, although its setting refuses one.
  const meant = (value: string) => (isSecret || /[@?]/.test(value) ? '' : `: ${value}`);
  const [, quote, quoted] = /^(["'])(.*)\1$/s.exec(text) ?? [];
  if (quote !== undefined && quoted !== undefined)
    return `must not be in quotes; remove them${meant(quoted.replaceAll(quote, ''))}`;
  if (text !== text.trim())
    return `must not begin or end with white space; remove it${meant(text.trim())}`;
  if (isPath) return mistypedPathReason(text, meant);
  return PLACEHOLDER.test(text)
    ? `must not be a placeholder, which dawatch does not replace; write its value${instead ?? ''}`
    : undefined;
}

/** The lookbehind keeps the time linear: the second part matches from one position only. */
const END_QUOTES = /^["'`“”‘’]+|(?<!["'`“”‘’])["'`“”‘’]+$/g;

function mistypedPathReason(text: string, meant: (value: string) => string): string | undefined {
  if (/^~(?:\/|$)/.test(text))
    return `must not begin with ~, which only a shell replaces; write ${homedir()} instead of ~`;
  if (text.startsWith('~'))
    return 'must not begin with ~, which only a shell replaces; write the path from /';
  if (/^\$\w|\$\{|^%\w+%/.test(text))
    return 'must not contain a variable, which only a shell replaces; write its value';
  const unquoted = text.replace(END_QUOTES, '');
  if (unquoted !== text) return `must not begin or end with a quote; remove it${meant(unquoted)}`;
  if (/^file:/i.test(text))
    return `must be a path, not an address; write the path${meant(text.replace(/^file:(?:\/\/(?:localhost)?(?=\/))?/i, ''))}`;
  if (text === ':memory:') return 'must be the path of a file, because memory keeps nothing';
  return undefined;
}

/** Whether a setting is the path of a file. */
export function isPath(setting: string): boolean {
  return setting === 'database' || setting.endsWith('_file');
}
