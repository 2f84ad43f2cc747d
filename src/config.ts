import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Config, configSchema, ENVIRONMENT } from './config-schema.ts';

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
  const file = from.file === null ? undefined : (from.file ?? fileOf(from.env));
  const input = file === undefined ? {} : readFile(file);
  const sources = new Map<string, string>();
  if (file !== undefined) for (const path of leaves(input)) sources.set(path, file);
  for (const [name, path] of Object.entries(ENVIRONMENT)) {
    const text = from.env[name];
    if (text === undefined || text === '') continue;
    assign(input, path, FROM_TEXT[path]?.(text) ?? text);
    sources.set(path, name);
  }
  const parsed = configSchema.safeParse(input);
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map((issue) => explain(issue, sources, file)));
  const descriptions = describeAll(parsed.data);
  const settings = [...descriptions].map(([path, description]) => ({
    path,
    value: valueAt(parsed.data, path),
    source: sources.get(path) ?? 'default',
    description,
  }));
  return { config: parsed.data, settings };
}

function fileOf(env: Record<string, string | undefined>): string | undefined {
  return env.DAWATCH_CONFIG || (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
}

/** Addresses of channels and of Redis hold keys and passwords. */
export function isSecret(path: string): boolean {
  return /(?:api_key|bearer|token|secret|password)$|^channels\..*url$|^redis\.url$/.test(path);
}

/** The environment variable of a setting; null: it has none. */
export function variableOf(path: string): string | null {
  return Object.entries(ENVIRONMENT).find(([, target]) => target === path)?.[0] ?? null;
}

/** What an environment variable, which is always text, means; undefined: not what it should be, the schema says why. */
const FROM_TEXT: Record<string, ((text: string) => unknown) | undefined> = {
  'server.port': (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  'webhooks.allow': (text) => text.split(',').map((part) => part.trim()),
  'webhooks.allow_http': (text) => ({ true: true, false: false, 1: true, 0: false })[text],
};

type Tree = { [key: string]: unknown };

function readFile(file: string): Tree {
  const text = orProblem(file, () => readFileSync(file, 'utf8'), messageOf);
  // The reader shows the line that is wrong, which may hold a key: only what it says before that is passed on.
  const content: unknown = orProblem(
    file,
    () => parse(text, { schema: 'core', logLevel: 'error' }),
    (error) => messageOf(error).split(/[:\n]/)[0],
  );
  if (content === null || content === undefined) return {};
  if (!isTree(content)) throw new ConfigError([`${file}: expected settings by name, like "server:"`]);
  return withoutEmpty(content);
}

function orProblem<T>(file: string, work: () => T, describe: (error: unknown) => string | undefined): T {
  try {
    return work();
  } catch (error) {
    throw new ConfigError([`${file}: ${describe(error)}`]);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A name without a value (a section whose lines are all comments) is as good as not there. */
function withoutEmpty(tree: Tree): Tree {
  const kept = Object.entries(tree).filter(([, value]) => value !== null);
  return Object.fromEntries(kept.map(([key, value]) => [key, isTree(value) ? withoutEmpty(value) : value]));
}

function explain(issue: z.core.$ZodIssue, sources: Map<string, string>, file: string | undefined): string {
  const path = issue.path.join('.');
  const source = sourceOf(issue.path.map(String), sources) ?? file ?? 'default';
  const { message } = (issue.code === 'invalid_key' && issue.issues[0]) || issue;
  return `${path || 'the settings'}: ${message} (from ${source})`;
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

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function leaves(tree: Tree, prefix = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) =>
    isTree(value) ? leaves(value, `${prefix}${key}.`) : [`${prefix}${key}`],
  );
}

function assign(tree: Tree, path: string, value: unknown): void {
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
