import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';

const seconds = (fallback: number, minimum = 0) =>
  z
    .number()
    .min(minimum)
    .max(366 * 86_400)
    .default(fallback);

const perMinute = (fallback: number) => z.number().int().min(0).max(1_000_000_000).default(fallback);

const isOrigin = (text: string) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;

const isBare = ({ username, password, search, hash }: URL) => !(username || password || search || hash);

const path = (fallback: string) =>
  z
    .string()
    .regex(/^\/[\x21-\x7e]+$/, 'a path that begins with /, printable ASCII without spaces')
    .refine((text) => !/[?#]/.test(text), 'a path without a query or a fragment')
    .default(fallback);

const upstreamSchema = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: 'an http:// or https:// address' })
    .refine((url) => !URL.canParse(url) || isBare(new URL(url)), {
      error: 'an address without credentials, a query or a fragment',
    })
    .optional()
    .describe('Base address of the upstream service. Nothing can be tracked without one'),
  api_key: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .optional()
    .describe('Key for its submission endpoints, sent as x-api-key'),
  bearer: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces, without the word Bearer')
    .optional()
    .describe("Token for its lookups of users. Without one, the caller's own Authorization is sent"),
  users: z
    .strictObject({
      get_path: path('/users/get_user').describe('Path of the lookup of one user, below the base address'),
      list_path: path('/admin/get_all_users').describe('Path of the listing of users'),
      parameters: z
        .enum(['query', 'body'])
        .default('query')
        .describe('Where the parameters of these travel; body: as JSON in the body of the GET'),
    })
    .prefault({})
    .describe('Its lookups of users'),
  timeout_s: seconds(10, 0.001).describe('Seconds for one whole call, from connecting to the last byte'),
  budget: z
    .strictObject({
      requests: z.number().int().min(1).max(100_000).default(50).describe('At most so many requests in any `per_s`'),
      per_s: seconds(1, 0.001).describe('Seconds of that window'),
      concurrency: z.number().int().min(1).max(1_000).default(32).describe('At most so many requests at once'),
    })
    .prefault({})
    .describe('What the upstream grants; never exceeded'),
});

const configSchema = z.strictObject({
  server: z
    .strictObject({
      host: z.string().min(1).default('127.0.0.1').describe('Address to listen on'),
      port: z.number().int().min(0).max(65_535).default(8080).describe('Port to listen on; 0 takes a free one'),
      shutdown_s: seconds(15).describe('Seconds that requests under way have to end when the server stops'),
      cors_origins: z
        .array(z.string().refine(isOrigin, 'an origin as browsers send it, like https://app.example'))
        .max(100)
        .default([])
        .describe('Origins whose pages may read the answers, each exactly; without any, none'),
    })
    .prefault({}),
  limits: z
    .strictObject({
      requests_per_minute: perMinute(60_000).describe(
        'Requests that one credential, or one address without any, may make in a minute; 0: no limit',
      ),
      failed_authentications_per_minute: perMinute(20).describe(
        'Wrong credentials from one address in a minute before no more are looked into; 0: no limit',
      ),
    })
    .prefault({}),
  auth: z
    .strictObject({
      api_key: z
        .string()
        .regex(/^[\x21-\x7e]{16,}$/, 'at least 16 characters, printable ASCII without spaces')
        .optional()
        .describe(
          'A service key that clients may use. Without any credential, one is made and shown at the first start',
        ),
      admin_token: z
        .string()
        .regex(/^[\x21-\x7e]{16,}$/, 'at least 16 characters, printable ASCII without spaces')
        .optional()
        .describe('A token of the role admin'),
    })
    .prefault({}),
  database: z.string().min(1).default('data/dawatch.db').describe('Path of the ledger, a SQLite file'),
  log: z
    .strictObject({
      level: z
        .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'])
        .default('info')
        .describe('Least level shown'),
      format: z.enum(['auto', 'json', 'pretty']).default('auto').describe('auto: pretty on a terminal, else JSON'),
    })
    .prefault({}),
  upstreams: z
    .record(z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, 'a name of a-z, 0-9, - and _'), upstreamSchema)
    .prefault({})
    .transform((upstreams) => ({ default: upstreamSchema.parse({}), ...upstreams }))
    .describe('The upstream services by name; a tracking request chooses one by `upstream`'),
  submissions: z
    .strictObject({
      deadline_s: seconds(86_400, 1).describe('Seconds until a submission that is not final ends as failed or expired'),
      unknown_grace_s: seconds(900).describe('Seconds for which "not found" only means "not yet"'),
      stuck_after_s: seconds(600).describe('Seconds after which an open submission is told to be stuck'),
      recheck_after_s: seconds(0).describe(
        'Seconds after which a finalized submission is asked about once more, so that a correction is noticed; 0: never',
      ),
    })
    .prefault({})
    .describe('Defaults of every submission; a tracking request may set its own'),
  facade: z
    .strictObject({
      max_age_s: seconds(2).describe(
        'Seconds for which /v1/get_submission_info gives the last answer about an open submission again',
      ),
    })
    .prefault({}),
  users: z
    .strictObject({
      max_limit: z
        .number()
        .int()
        .min(1)
        .max(10_000)
        .default(1_000)
        .describe('The largest `limit` of a listing of users'),
    })
    .prefault({}),
  pacing: z
    .strictObject({
      min_interval_s: seconds(2, 0.01).describe('Least seconds between two requests about one submission'),
      max_interval_s: seconds(60, 0.01).describe(
        'Most seconds between them in the first hour; later up to five times that',
      ),
    })
    .prefault({})
    .refine((pacing) => pacing.min_interval_s <= pacing.max_interval_s, 'min_interval_s is above max_interval_s'),
  breaker: z
    .strictObject({
      failures: z.number().int().min(1).max(1_000).default(5).describe('So many failures in a row mean an outage'),
      probe_after_s: seconds(1, 0.01).describe(
        'Seconds until the first probe of an upstream that is out; then doubled',
      ),
      max_probe_s: seconds(30, 0.01).describe('Most seconds between two probes'),
    })
    .prefault({}),
});

export type Config = z.output<typeof configSchema>;
export type UpstreamConfig = z.output<typeof upstreamSchema>;

/** Environment variables and the setting each one sets. */
export const ENVIRONMENT = {
  DAWATCH_UPSTREAM_URL: 'upstreams.default.url',
  DAWATCH_UPSTREAM_API_KEY: 'upstreams.default.api_key',
  DAWATCH_UPSTREAM_BEARER: 'upstreams.default.bearer',
  DAWATCH_DATABASE: 'database',
  DAWATCH_HOST: 'server.host',
  DAWATCH_PORT: 'server.port',
  DAWATCH_LOG_LEVEL: 'log.level',
  DAWATCH_API_KEY: 'auth.api_key',
  DAWATCH_ADMIN_TOKEN: 'auth.admin_token',
} as const;

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
    assign(input, path, path === 'server.port' && /^\d+$/.test(text) ? Number(text) : text);
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

export function isSecret(path: string): boolean {
  return /(?:api_key|bearer|token|secret|password)$/.test(path);
}

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
  const source = sources.get(path) ?? file ?? 'default';
  const { message } = (issue.code === 'invalid_key' && issue.issues[0]) || issue;
  return `${path || 'the settings'}: ${message} (from ${source})`;
}

/** Every setting of a parsed config with its description, upstreams by their names. */
function describeAll(config: Config): Map<string, string> {
  const found = new Map<string, string>();
  const walk = (schema: unknown, path: string) => {
    const inner = unwrap(schema);
    if (inner instanceof z.ZodObject) {
      for (const [key, field] of Object.entries(inner.shape)) walk(field, path ? `${path}.${key}` : key);
    } else if (inner instanceof z.ZodRecord) {
      for (const name of Object.keys(config.upstreams)) walk(inner.valueType, `${path}.${name}`);
    } else {
      found.set(path, descriptionOf(schema));
    }
  };
  walk(configSchema, '');
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
