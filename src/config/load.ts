import { existsSync } from 'node:fs';
import { z } from 'zod';
import { ownVariables, unknownVariables } from './environment.ts';
import { type Config, configSchema, ENVIRONMENT, REMOVED } from './schema.ts';
import { checkWith, type SchemaProblem } from './schema-problems.ts';
import { isTree, readSettings, type SettingsFile, type SettingsTree } from './settings-file.ts';

const DEFAULT_FILE = 'config/dawatch.yaml';

/** What is wrong with the settings, one line per problem, each naming the setting and where it was set. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the settings are not usable:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/** One setting as it is in force. `source`: an environment variable, a file, or "default". */
export type Setting = { path: string; value: unknown; source: string; description: string };

export type LoadedConfig = { config: Config; settings: Setting[] };

/**
 * Environment over file over defaults. `file` undefined: config/dawatch.yaml if there is one; null: none.
 * Throws ConfigError naming everything that is wrong at once.
 */
export function loadConfig(from: {
  env: Record<string, string | undefined>;
  file?: string | null | undefined;
}): LoadedConfig {
  const own = ownVariables(from.env);
  const file = from.file === null ? undefined : (from.file ?? fileOf(own));
  const read = file === undefined ? withoutFile() : readSettings(file);
  if (read.kind === 'unusable') throw new ConfigError([`${file}: ${read.reason}`]);
  const input = read.tree;
  const sources = new Map<string, string>();
  if (file !== undefined) for (const path of leaves(input)) sources.set(path, file);
  for (const [name, path] of Object.entries(ENVIRONMENT)) {
    const text = own[name];
    if (text === undefined) continue;
    assign(input, path, FROM_TEXT[path]?.(text) ?? text);
    sources.set(path, name);
  }
  const checked = checkWith(configSchema, input, isSecret);
  const problems = unknownVariables(own);
  if (checked.kind === 'invalid')
    problems.push(...checked.problems.map((problem) => explain(problem, { sources, file, lineOf: read.lineOf })));
  if (checked.kind === 'invalid' || problems.length > 0) throw new ConfigError(problems);
  const { data } = checked;
  const descriptions = describeAll(data);
  const settings = [...descriptions].map(([path, description]) => ({
    path,
    value: valueAt(data, path),
    source: sources.get(path) ?? 'default',
    description,
  }));
  return { config: data, settings };
}

function withoutFile(): SettingsFile {
  return { kind: 'read', tree: {}, lineOf: () => undefined };
}

function fileOf(own: Record<string, string>): string | undefined {
  return own.DAWATCH_CONFIG || (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
}

/** Addresses of channels and of Redis hold keys and passwords. */
export function isSecret(path: string): boolean {
  return /(?:api_key|bearer|token|secret|password)$|^channels\..*url$|^redis\.url$/.test(path);
}

/** Every secret of the settings. Of an address the whole and its password, as it is written and as it is meant. */
export function secretsOf(settings: readonly Setting[]): string[] {
  return settings.flatMap(({ path, value }) => {
    if (!isSecret(path) || typeof value !== 'string') return [];
    const password = URL.parse(value)?.password ?? '';
    return [value, password, decoded(password)];
  });
}

/** As it is, where a % begins nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The environment variable of a setting; null: it has none. */
export function variableOf(path: string): string | null {
  return Object.entries(ENVIRONMENT).find(([, target]) => target === path)?.[0] ?? null;
}

/** What an environment variable, which is always text, means; undefined: not what it should be, the schema says why. */
const FROM_TEXT: Record<string, ((text: string) => unknown) | undefined> = {
  'server.port': (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  'pacing.lag_price': (text) => (/^\d+(\.\d+)?$/.test(text) ? Number(text) : undefined),
  'server.trusted_proxies': toList,
  'webhooks.allow': toList,
  'webhooks.allow_http': (text) => ({ true: true, false: false, 1: true, 0: false })[text],
};

function toList(text: string): string[] {
  return text.split(',').map((part) => part.trim());
}

/** "server.port must be a number, not text (dawatch.yaml:3)". */
function explain(
  { path, text: problem }: SchemaProblem,
  from: {
    sources: Map<string, string>;
    file: string | undefined;
    lineOf: (path: readonly string[]) => number | undefined;
  },
): string {
  const source = sourceOf(path, from.sources) ?? from.file ?? 'default';
  const line = source === from.file ? from.lineOf(path) : undefined;
  const text = REMOVED[path.join('.')] ?? problem;
  const isPredicate = /^(?:must|is) /.test(text);
  return `${path.join('.')}${isPredicate ? '' : ':'} ${text} (${source}${line === undefined ? '' : `:${line}`})`;
}

/** Where the setting came from, or the list or section that it is in. */
function sourceOf(path: readonly string[], sources: Map<string, string>): string | undefined {
  if (path.length === 0) return undefined;
  return sources.get(path.join('.')) ?? sourceOf(path.slice(0, -1), sources);
}

/** Every setting of a parsed config with its description; what has names of its own by those. */
function describeAll(config: Config): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (schema: unknown, value: unknown, path: string) => {
    const inner = unwrap(schema);
    const below = (key: string) => (path ? `${path}.${key}` : key);
    if (inner instanceof z.ZodObject) {
      for (const [key, field] of Object.entries(inner.shape)) walk(field, valueAt(value, key), below(key));
    } else if (inner instanceof z.ZodRecord && isTree(value)) {
      for (const name of Object.keys(value)) walk(inner.valueType, value[name], below(name));
    } else if (inner instanceof z.ZodDiscriminatedUnion) {
      walk(
        inner.options.find((option) => z.safeParse(option, value).success),
        value,
        path,
      );
    } else {
      found.set(path, descriptionOf(schema));
    }
  };
  walk(configSchema, config, '');
  return found;
}

function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in);
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault || schema instanceof z.ZodOptional)
    return unwrap(schema.def.innerType);
  return schema;
}

function descriptionOf(schema: unknown): string {
  return schema instanceof z.ZodType ? (schema.description ?? '') : '';
}

function leaves(tree: SettingsTree, prefix = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) =>
    isTree(value) ? leaves(value, `${prefix}${key}.`) : value === undefined ? [] : [`${prefix}${key}`],
  );
}

function assign(tree: SettingsTree, path: string, value: unknown): void {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    tree[head] = value;
    return;
  }
  const child = tree[head];
  // A section that is no section is left for the schema to refuse.
  if (child !== undefined && !isTree(child)) return;
  const subtree = child ?? {};
  tree[head] = subtree;
  assign(subtree, rest.join('.'), value);
}

function valueAt(tree: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((node, key) => (isTree(node) ? node[key] : undefined), tree);
}
