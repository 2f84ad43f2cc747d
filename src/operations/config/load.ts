import { existsSync } from 'node:fs';
import { z } from 'zod';
import { secretsOfLogin, secretsOfQuery } from '../../lib/request-headers.ts';
import { checkWith, isPath, mistypedReason, type SchemaProblem } from './schema-problems.ts';
import {
  counterpartOf,
  fileVariables,
  isSecret,
  isTree,
  readSecretFiles,
  readSettings,
  type SecretUser,
  type SettingsFile,
  type SettingsTree,
  toList,
} from './settings-file.ts';

export const ENVIRONMENT = {
  DAWATCH_UPSTREAM_URL: 'upstreams.default.url',
  DAWATCH_UPSTREAM_API_KEY: 'upstreams.default.api_key',
  DAWATCH_UPSTREAM_BEARER: 'upstreams.default.bearer',
  DAWATCH_CHAIN_URL: 'upstreams.default.chain.urls',
  DAWATCH_DATABASE: 'database',
  DAWATCH_HOST: 'server.host',
  DAWATCH_PORT: 'server.port',
  DAWATCH_PUBLIC_URL: 'server.public_url',
  DAWATCH_TRUSTED_PROXIES: 'server.trusted_proxies',
  DAWATCH_LOG_LEVEL: 'log.level',
  DAWATCH_SERVICE_KEY: 'auth.service_key',
  DAWATCH_ADMIN_TOKEN: 'auth.admin_token',
  DAWATCH_OIDC_ISSUER: 'oidc.issuer',
  DAWATCH_OIDC_CLIENT_ID: 'oidc.client_id',
  DAWATCH_OIDC_CLIENT_SECRET: 'oidc.client_secret',
  DAWATCH_REDIS_URL: 'redis.url',
  DAWATCH_HEARTBEAT_URL: 'heartbeat.url',
  DAWATCH_WEBHOOK_ALLOW: 'webhooks.allow',
  DAWATCH_WEBHOOK_ALLOW_HTTP: 'webhooks.allow_http',
} as const;

/** Variables of the command line, and of the receivers in the documents. */
const OTHERS = [
  'DAWATCH_CONFIG',
  'DAWATCH_URL',
  'DAWATCH_API_KEY',
  'DAWATCH_API_KEY_FILE',
  'DAWATCH_TOKEN',
  'DAWATCH_TOKEN_FILE',
  'DAWATCH_WEBHOOK_SECRET',
];

const KNOWN = [...Object.keys(ENVIRONMENT), ...Object.keys(fileVariables(ENVIRONMENT)), ...OTHERS];

const SERVICE_LINK =
  /^DAWATCH_(?:[A-Z0-9_]+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;
const SERVICE_PORT = /^DAWATCH_(?:[A-Z0-9_]+_)?PORT$/;
const SERVICE_ADDRESS = /^(?:tcp|udp|sctp):\/\//;

type Environment = Record<string, string | undefined>;

/**
 * Without those of Kubernetes for a Service whose name begins with "dawatch" (DAWATCH_SERVICE_HOST,
 * DAWATCH_PORT=tcp://…, DAWATCH_PORT_8080_TCP…).
 */
function variablesOf(env: Environment): Record<string, string> {
  const found = Object.entries(env).filter(
    (entry): entry is [string, string] =>
      entry[0].startsWith('DAWATCH_') && !!entry[1] && !isServiceLink(entry[0], entry[1]),
  );
  return Object.fromEntries(found);
}

/** One sentence each, without the value. A misspelt variable would have no effect. */
export function unknownVariables(variables: Record<string, string>): string[] {
  return Object.keys(variables)
    .filter((name) => !KNOWN.includes(name))
    .map((name) => `${name} is not a variable of dawatch`);
}

/** Returns one sentence per variable that is in quotes, or is a path that begins with `~`. */
function mistypedVariables(variables: Record<string, string>): string[] {
  const settings: Record<string, string | undefined> = { ...ENVIRONMENT, ...FILE_VARIABLES };
  return Object.entries(variables).flatMap(([name, text]) => {
    const setting = settings[name];
    const reason = mistypedReason(text, {
      isPath: name.endsWith('_FILE') || name === 'DAWATCH_CONFIG' || setting === 'database',
      isSecret: name !== 'DAWATCH_CONFIG' && (setting === undefined || isSecret(setting)),
      instead: insteadOf(setting ?? ''),
    });
    return reason === undefined ? [] : [`${name} ${reason}`];
  });
}

/** The same for the settings of a file. */
function mistypedSettings(tree: SettingsTree): SchemaProblem[] {
  return leaves(tree).flatMap((path) => {
    const texts = [valueAt(tree, path)].flat().filter((value) => typeof value === 'string');
    return texts.flatMap((value) => {
      const kinds = { isPath: isPath(path), isSecret: isSecret(path) };
      const text = mistypedReason(value, { ...kinds, instead: insteadOf(path) });
      return text === undefined ? [] : [{ path: path.split('.'), text }];
    });
  });
}

/** Returns the other ways to set a secret, as the end of a sentence; empty for other settings. */
function insteadOf(path: string): string {
  if (!isSecret(path)) return '';
  const variable = variableOf(path);
  return `, name a file in ${path}_file${variable === null ? '' : `, or set ${variable}`}`;
}

function isServiceLink(name: string, value: string): boolean {
  return SERVICE_LINK.test(name) || (SERVICE_PORT.test(name) && SERVICE_ADDRESS.test(value));
}

const DEFAULT_FILE = 'config/dawatch.yaml';
const FILE_VARIABLES = fileVariables(ENVIRONMENT);

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the settings are invalid:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
    this.problems = problems;
  }
}

/** One setting in force. `source`: an environment variable, a file, or "default". */
export type Setting = { path: string; value: unknown; source: string; description: string };

/** `file`: the settings file, if there is one. */
export type Loaded<Config> = { config: Config; settings: Setting[]; file: string | undefined };

export type SettingsFrom = {
  env: Record<string, string | undefined>;
  file?: string | null | undefined;
  user?: SecretUser;
};

/**
 * Environment variables override the file. `file` undefined: DAWATCH_CONFIG or config/dawatch.yaml
 * if it exists; null: none. Reads only the secret files that `user` uses, default all. Throws one
 * ConfigError with all problems.
 */
export function loadSettings<Schema extends z.ZodType<object>>(
  schema: Schema,
  from: SettingsFrom,
): Loaded<z.output<Schema>> {
  const variables = variablesOf(from.env);
  const mistyped = mistypedVariables(variables);
  if (mistyped.length > 0) throw new ConfigError([...unknownVariables(variables), ...mistyped]);
  const file = from.file === null ? undefined : (from.file ?? fileOf(variables));
  const read: SettingsFile =
    file === undefined ? { kind: 'read', tree: {}, lineOf: () => undefined } : readSettings(file);
  if (read.kind === 'unusable') throw new ConfigError([`${file}: ${read.reason}`]);
  const input = read.tree;
  const sources = new Map<string, string>();
  if (file !== undefined) for (const path of leaves(input)) sources.set(path, file);
  const toLine = (problem: SchemaProblem) =>
    explain(problem, { sources, file, lineOf: read.lineOf });
  const mistypedInFile = mistypedSettings(input).map(toLine);
  if (mistypedInFile.length > 0) throw new ConfigError(mistypedInFile);
  const problems = unknownVariables(variables);
  for (const [name, path] of Object.entries({ ...ENVIRONMENT, ...FILE_VARIABLES })) {
    const text = variables[name];
    if (text === undefined) continue;
    const other = counterpartOf(path);
    if (other !== undefined) {
      const otherSource = sources.get(other);
      if (otherSource !== undefined && otherSource !== file)
        problems.push(`${name}: ${otherSource} is set, too; set only one of them`);
      remove(input, other);
      sources.delete(other);
    }
    assign(input, path, FROM_TEXT[path]?.(text) ?? text);
    sources.set(path, name);
  }
  const secretFiles = readSecretFiles(input, from.user ?? 'server');
  for (const { path, text } of secretFiles.problems)
    problems.push(`${path}${text} (${sources.get(path) ?? file})`);
  for (const [path, source] of sources) {
    const secret = path.endsWith('_file') ? counterpartOf(path) : undefined;
    if (secret !== undefined)
      sources.set(secret, source === file ? `${file}, ${path.split('.').at(-1)}` : source);
  }
  const checked = checkWith(schema, input);
  if (checked.kind === 'invalid') problems.push(...checked.problems.map(toLine));
  if (checked.kind === 'invalid' || problems.length > 0) throw new ConfigError(problems);
  const { data } = checked;
  const descriptions = describeAll(schema, data);
  for (const path of secretFiles.unread) remove(data as SettingsTree, path);
  const settings = [...descriptions].map(([path, description]) => ({
    path,
    value: valueAt(data, path),
    source: sources.get(path) ?? 'default',
    description,
  }));
  return { config: data, settings, file };
}

function fileOf(variables: Record<string, string>): string | undefined {
  return variables.DAWATCH_CONFIG || (existsSync(DEFAULT_FILE) ? DEFAULT_FILE : undefined);
}

/** For an address: the address, its login, and the values of its query. */
export function secretsOf(settings: readonly Setting[]): string[] {
  return settings.flatMap(({ path, value }) => {
    if (!isSecret(path)) return [];
    return [value].flat().flatMap((secret) => {
      if (typeof secret !== 'string') return [];
      const url = URL.parse(secret);
      return [secret, ...(url ? [...secretsOfLogin(url), ...secretsOfQuery(url)] : [])];
    });
  });
}

export function variableOf(path: string): string | null {
  return Object.entries(ENVIRONMENT).find(([, target]) => target === path)?.[0] ?? null;
}

/** Returns undefined for invalid text, which the schema then reports. */
const FROM_TEXT: Record<string, ((text: string) => unknown) | undefined> = {
  'server.port': (text) => (/^\d+$/.test(text) ? Number(text) : undefined),
  'server.trusted_proxies': toList,
  'upstreams.default.chain.urls': toList,
  'webhooks.allow': toList,
  'webhooks.allow_http': (text) => ({ true: true, false: false, 1: true, 0: false })[text],
};

/** Returns a line such as "server.port must be a number, not text (dawatch.yaml:3)". */
function explain(
  { path, text }: SchemaProblem,
  from: {
    sources: Map<string, string>;
    file: string | undefined;
    lineOf: (path: readonly string[]) => number | undefined;
  },
): string {
  const source = sourceOf(path, from.sources) ?? from.file ?? 'default';
  const line = source === from.file ? from.lineOf(path) : undefined;
  const isPredicate = /^(?:must|is|has) /.test(text);
  return `${path.join('.')}${isPredicate ? '' : ':'} ${text} (${source}${line === undefined ? '' : `:${line}`})`;
}

function sourceOf(path: readonly string[], sources: Map<string, string>): string | undefined {
  if (path.length === 0) return undefined;
  return sources.get(path.join('.')) ?? sourceOf(path.slice(0, -1), sources);
}

/** By path, including settings under names of the operator. */
function describeAll(root: z.ZodType, config: object): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (schema: unknown, value: unknown, path: string) => {
    const inner = unwrap(schema);
    const below = (key: string) => (path ? `${path}.${key}` : key);
    if (inner instanceof z.ZodObject) {
      for (const [key, field] of Object.entries(inner.shape))
        walk(field, valueAt(value, key), below(key));
    } else if (inner instanceof z.ZodRecord && isTree(value)) {
      for (const name of Object.keys(value)) walk(inner.valueType, value[name], below(name));
    } else if (inner instanceof z.ZodDiscriminatedUnion) {
      walk(
        inner.options.find((option) => z.safeParse(option, value).success),
        value,
        path,
      );
    } else {
      found.set(path, (schema instanceof z.ZodType && schema.description) || '');
    }
  };
  walk(root, config, '');
  return found;
}

function unwrap(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe) return unwrap(schema.in);
  if (
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodOptional
  )
    return unwrap(schema.def.innerType);
  return schema;
}

function leaves(tree: SettingsTree, prefix = ''): string[] {
  return Object.entries(tree).flatMap(([key, value]) =>
    isTree(value)
      ? leaves(value, `${prefix}${key}.`)
      : value === undefined
        ? []
        : [`${prefix}${key}`],
  );
}

function assign(tree: SettingsTree, path: string, value: unknown): void {
  const [head = '', ...rest] = path.split('.');
  if (rest.length === 0) {
    tree[head] = value;
    return;
  }
  const child = tree[head];
  // The schema reports a section with a value of another type.
  if (child !== undefined && !isTree(child)) return;
  const subtree = child ?? {};
  tree[head] = subtree;
  assign(subtree, rest.join('.'), value);
}

function remove(tree: SettingsTree, path: string): void {
  const section = path.includes('.') ? valueAt(tree, path.slice(0, path.lastIndexOf('.'))) : tree;
  if (isTree(section)) delete section[path.slice(path.lastIndexOf('.') + 1)];
}

function valueAt(tree: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((node, key) => (isTree(node) ? node[key] : undefined), tree);
}
