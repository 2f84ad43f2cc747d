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
    return `must not be in quotes; remove them${meant(quoted)}`;
  if (text !== text.trim())
    return `must not begin or end with white space; remove it${meant(text.trim())}`;
  if (isPath && text.startsWith('~'))
    return /^~(?:\/|$)/.test(text)
      ? `must not begin with ~, which only a shell replaces; write ${homedir()} instead of ~`
      : 'must not begin with ~, which only a shell replaces; write the path from /';
  return undefined;
}

/** Whether a setting is the path of a file. */
export function isPath(setting: string): boolean {
  return setting === 'database' || setting.endsWith('_file');
}
