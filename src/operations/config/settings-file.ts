import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { mistypedReason } from './schema-problems.ts';

export type SettingsTree = { [key: string]: unknown };

/** The content, or why it is unusable. `lineOf` returns the line of a setting, from 1. */
export type SettingsFile =
  | { kind: 'read'; tree: SettingsTree; lineOf: (path: readonly string[]) => number | undefined }
  | { kind: 'unusable'; reason: string };

/** `merge`: the key `<<` inserts the settings of an alias. */
const OPTIONS = { schema: 'core', merge: true, logLevel: 'error' } as const;

const UNKNOWN_TAG =
  'has a tag such as !env, which dawatch does not replace: write the value, in quotes if it begins with !, name a file with …_file, or set the variable';

/** Far above the settings of hundreds of upstreams and channels. */
const MAX_SETTINGS_BYTES = 1024 * 1024;

export function readSettings(file: string): SettingsFile {
  const read = readBounded(file, MAX_SETTINGS_BYTES);
  if ('problem' in read) return { kind: 'unusable', reason: read.problem };
  try {
    const lineCounter = new LineCounter();
    const document = parseDocument(read.text, { ...OPTIONS, lineCounter });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) {
      const isTag = problem.code === 'TAG_RESOLVE_FAILED';
      const reason = isTag ? UNKNOWN_TAG : withoutQuote(problem.message);
      return { kind: 'unusable', reason: `${reason} (line ${problem.linePos?.[0].line})` };
    }
    const content: unknown = document.toJS() ?? {};
    if (!isTree(content))
      return { kind: 'unusable', reason: 'expected named settings, such as "server:"' };
    const lineOf = (path: readonly string[]) => lineIn(document, lineCounter, path);
    return { kind: 'read', tree: withoutEmpty(content), lineOf };
  } catch (error) {
    return { kind: 'unusable', reason: error instanceof Error ? withoutQuote(error.message) : '' };
  }
}

/** The parser quotes the invalid line, which may contain a key, after a colon. */
function withoutQuote(message: string): string {
  return message.split(/ at line |[:\n]/)[0] ?? '';
}

/** Sections whose keys are chosen by the operator. */
const NAMED = ['upstreams', 'channels'];

/**
 * Replaces empty values by undefined. The keys remain, so that unknown ones are reported:
 * "api_key:secret" without a space is such a key.
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
function lineIn(
  { contents }: Document.Parsed,
  lineCounter: LineCounter,
  path: readonly string[],
): number | undefined {
  let node: unknown = contents;
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

/** Names a file with the secret instead of the secret. */
const SUFFIX = '_file';
/** Tokens, keys and addresses are much shorter. A larger file is not one secret. */
const MAX_BYTES = 16_384;

/**
 * Addresses of channels, heartbeat, Redis and nodes contain keys and passwords, and so do topics of
 * ntfy and headers for proxies. The Helm chart has the same expression.
 */
export const SECRET_SETTING =
  /(?:_key|bearer|token|secret|password)$|^channels\..*(?:url|topic)$|^(?:redis|heartbeat)\.url$|\.chain\.urls$|^upstreams\.[^.]+\.headers\./;

export function isSecret(path: string): boolean {
  return SECRET_SETTING.test(path) && !path.endsWith(SUFFIX);
}

/** Such as DAWATCH_SERVICE_KEY_FILE, each with its setting. */
export function fileVariables(
  environment: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment)
      .filter(([, path]) => isSecret(path))
      .map(([name, path]) => [`${name}_FILE`, `${path}${SUFFIX}`]),
  );
}

/** `auth.service_key` and `auth.service_key_file` exclude each other. */
export function counterpartOf(path: string): string | undefined {
  const secret = path.endsWith(SUFFIX) ? path.slice(0, -SUFFIX.length) : path;
  if (!isSecret(secret)) return undefined;
  return path === secret ? `${path}${SUFFIX}` : secret;
}

/** Secrets by kind of process. `client`: a command that sends requests with the service key. */
const USED = {
  server: /^/,
  worker: /^(?:upstreams\..*\.api_key|upstreams\.[^.]+\.headers\..*|redis\..*)$/,
  worker_check: /^redis\./,
  client: /^auth\.service_key$/,
  none: /^$/,
} as const;

export type SecretUser = keyof typeof USED;

/**
 * Replaces names of secret files by the secrets, in place. Files that `user` does not use become a
 * placeholder, and are in `unread`. `problems`: one per unusable file. Other settings that end in
 * `_file` stay for the schema to report.
 */
export function readSecretFiles(tree: SettingsTree, user: SecretUser) {
  const problems: { path: string; text: string }[] = [];
  const unread: string[] = [];
  const visit = (section: SettingsTree, prefix: string) => {
    for (const [key, value] of Object.entries(section)) {
      const path = `${prefix}${key}`;
      const secretKey = key.slice(0, -SUFFIX.length);
      const secretPath = `${prefix}${secretKey}`;
      const report = (text: string) => problems.push({ path, text });
      if (isTree(value)) {
        visit(value, `${path}.`);
        continue;
      }
      if (!key.endsWith(SUFFIX) || !isSecret(secretPath) || value === undefined) continue;
      if (section[secretKey] !== undefined) {
        report(`: ${secretPath} is set, too; set only one of them`);
        continue;
      }
      if (typeof value !== 'string') {
        report(' must be the path of a file');
        continue;
      }
      delete section[key];
      if (USED[user].test(secretPath)) {
        const read = readSecretFile(value);
        // The value is not quoted: it may be the secret itself, set by mistake instead of the name
        // of a file.
        if ('problem' in read) report(` ${read.problem}`);
        else section[secretKey] = fromText(secretPath, read.secret);
      } else {
        section[secretKey] = fromText(secretPath, placeholderOf(secretPath));
        unread.push(secretPath);
      }
    }
  };
  visit(tree, '');
  return { problems, unread };
}

export function toList(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

function fromText(path: string, secret: string): string | string[] {
  return path.endsWith('urls') ? toList(secret) : secret;
}

/** Returns a text that the schema accepts for this secret. */
function placeholderOf(path: string): string {
  if (path.endsWith('urls')) return 'ws://not-read.invalid';
  // 32 characters, as PagerDuty's keys.
  if (!path.endsWith('url')) return 'secret-of-file-that-was-not-read';
  return `${path === 'redis.url' ? 'rediss' : path.endsWith('smtp_url') ? 'smtp' : 'http'}://not-read.invalid`;
}

/**
 * Without a byte order mark and the last line break. The problem quotes neither content nor name.
 */
export function readSecretFile(file: string): { secret: string } | { problem: string } {
  const read = readBounded(file, MAX_BYTES);
  if ('problem' in read) return { problem: `names a file that ${read.problem}` };
  const text = read.text.replace(/^\uFEFF/, '').replace(/\r?\n$/, '');
  if (text.trim() === '') return { problem: 'names an empty file' };
  const mistyped = mistypedReason(text, { isPath: false, isSecret: true });
  if (mistyped !== undefined) return { problem: `names a file whose content ${mistyped}` };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a secret has none.
  if (/[\x00-\x1f\x7f]/.test(text))
    return { problem: 'names a file with line breaks or control characters; it must be one line' };
  return { secret: text };
}

const REASONS: Record<string, string | undefined> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a directory, not a file',
  EACCES: 'cannot be read: permission is missing',
};

/** Follows symbolic links. Reads a pipe to its end. The problem is a predicate. */
function readBounded(file: string, maxBytes: number): { text: string } | { problem: string } {
  let descriptor: number | undefined;
  try {
    const stats = statSync(file);
    // Opening a device may already have an effect, and it may never end.
    if (!stats.isFile() && !stats.isFIFO() && !stats.isDirectory())
      return { problem: 'is neither a file nor a pipe' };
    descriptor = openSync(file, 'r');
    // The size is not known beforehand: it is 0 for pipes and files of /proc, and may grow.
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (let read = 1; read > 0 && length <= maxBytes; length += read)
      read = readSync(descriptor, bytes, length, bytes.length - length, null);
    return length > maxBytes
      ? { problem: `is larger than ${maxBytes} bytes` }
      : { text: bytes.toString('utf8', 0, length) };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return { problem: REASONS[code] ?? `cannot be read (${code})` };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
