import { homedir } from 'node:os';

/**
 * Returns why a value is not what was meant, and what to write instead; undefined: nothing is
 * wrong. `docker --env-file` and templates keep quotes, and only a shell replaces `~`.
 * `isSecret`: the value is not shown.
 */
export function mistypedReason(
  text: string,
  { isPath, isSecret }: { isPath: boolean; isSecret: boolean },
): string | undefined {
  // An address may contain a password, although its setting refuses one.
  const meant = (value: string) => (isSecret || /[@?]/.test(value) ? '' : `: ${value}`);
  const [, quote, quoted] = /^(["'])(.*)\1$/s.exec(text) ?? [];
  if (quote !== undefined && quoted !== undefined)
    return `must not be in quotes; remove them${meant(quoted.replaceAll(quote, ''))}`;
  if (text !== text.trim())
    return `must not begin or end with white space; remove it${meant(text.trim())}`;
  return isPath ? mistypedPathReason(text, meant) : undefined;
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
