import { readFileSync, statSync } from 'node:fs';
import { isTree, type SettingsTree } from './settings-file.ts';

/** The suffix of a setting, and of an environment variable, that names a file with the secret instead of the secret. */
const SUFFIX = '_file';
/** Tokens, keys and addresses are much shorter. A larger file is not one secret. */
const MAX_BYTES = 16_384;

const REASONS: Record<string, string | undefined> = {
  ENOENT: 'the file does not exist',
  EISDIR: 'is a directory, not a file',
  EACCES: 'no permission to read the file',
};

/** Returns whether a setting is a secret. Addresses of channels and of Redis contain keys and passwords. */
export function isSecret(path: string): boolean {
  return /(?:api_key|bearer|token|secret|password)$|^channels\..*url$|^redis\.url$/.test(path);
}

/** Returns the variables that name a file with a secret, such as DAWATCH_API_KEY_FILE, each with its setting. */
export function fileVariables(environment: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment)
      .filter(([, path]) => isSecret(path))
      .map(([name, path]) => [`${name}_FILE`, `${path}${SUFFIX}`]),
  );
}

/** Returns the setting that excludes this one: `auth.api_key` and `auth.api_key_file` exclude each other. */
export function counterpartOf(path: string): string | undefined {
  const secret = path.endsWith(SUFFIX) ? path.slice(0, -SUFFIX.length) : path;
  if (!isSecret(secret)) return undefined;
  return path === secret ? `${path}${SUFFIX}` : secret;
}

/**
 * Replaces each setting that names a file with a secret by the secret, in place. Returns one problem per file that is unusable.
 * Other settings that end in `_file` stay, so that the schema reports them.
 */
export function readSecretFiles(tree: SettingsTree, prefix = ''): { path: string; text: string }[] {
  return Object.entries(tree).flatMap(([key, value]) => {
    if (isTree(value)) return readSecretFiles(value, `${prefix}${key}.`);
    const path = `${prefix}${key}`;
    const secretKey = key.slice(0, -SUFFIX.length);
    if (!key.endsWith(SUFFIX) || !isSecret(`${prefix}${secretKey}`) || value === undefined) return [];
    if (tree[secretKey] !== undefined)
      return [{ path, text: `: ${prefix}${secretKey} is set, too; set only one of them` }];
    if (typeof value !== 'string') return [{ path, text: ' must be the path of a file' }];
    delete tree[key];
    const read = readSecretFile(value);
    if ('problem' in read) return [{ path, text: `: ${value}: ${read.problem}` }];
    tree[secretKey] = read.secret;
    return [];
  });
}

/** Returns the content of a file with one secret, without the line break at its end. The problem does not quote the content. */
export function readSecretFile(file: string): { secret: string } | { problem: string } {
  let text: string;
  try {
    if (statSync(file).size > MAX_BYTES) return { problem: `is larger than ${MAX_BYTES} bytes, so it is not a secret` };
    text = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return { problem: REASONS[code] ?? `cannot be read (${code})` };
  }
  if (text.trim() === '') return { problem: 'is empty' };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a secret has none.
  if (/[\x00-\x1f\x7f]/.test(text))
    return { problem: 'contains line breaks or control characters; it must be one line' };
  return { secret: text };
}
