import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { ConfigError, isSecret, type LoadedConfig, loadConfig } from '../src/config.ts';
import { ENVIRONMENT } from '../src/config-schema.ts';
import { tempFolder } from './support/temp-folder.ts';

const SHIPPED = 'config/dawatch.yaml';
const SECRET = 'hunter2-must-never-be-shown';

function fileOf(yaml: string): string {
  const file = join(tempFolder(), 'settings.yaml');
  writeFileSync(file, yaml);
  return file;
}

function load(yaml: string, env: Record<string, string> = {}): LoadedConfig {
  return loadConfig({ env, file: fileOf(yaml) });
}

/** What is wrong with these settings; no secret is in it, and no path of the temp folder but as the source. */
function problems(yaml: string, env: Record<string, string> = {}): string[] {
  try {
    load(yaml, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message).not.toContain(SECRET);
    expect(error.message).toContain(error.problems.join('\n  '));
    return error.problems.map((problem) => problem.replace(/\S*settings\.yaml/g, 'FILE'));
  }
  return [];
}

const sourceOf = ({ settings }: LoadedConfig, path: string) =>
  settings.find((setting) => setting.path === path)?.source;

describe('what is in force', () => {
  it('the environment wins over the file, the file over the defaults; each says where it came from', () => {
    const loaded = load('server: { host: 10.0.0.1, port: 1 }\nupstreams: { default: { url: "http://file" } }', {
      DAWATCH_PORT: '2',
      DAWATCH_UPSTREAM_API_KEY: 'k',
    });
    expect(loaded.config.server).toMatchObject({ host: '10.0.0.1', port: 2, shutdown_s: 15 });
    expect(loaded.config.upstreams.default).toMatchObject({ url: 'http://file', api_key: 'k', timeout_s: 10 });
    expect(sourceOf(loaded, 'server.port')).toBe('DAWATCH_PORT');
    expect(sourceOf(loaded, 'server.host')).toMatch(/settings\.yaml$/);
    expect(sourceOf(loaded, 'server.shutdown_s')).toBe('default');
    expect(sourceOf(loaded, 'upstreams.default.url')).toMatch(/settings\.yaml$/);
    expect(sourceOf(loaded, 'upstreams.default.api_key')).toBe('DAWATCH_UPSTREAM_API_KEY');
    expect(sourceOf(loaded, 'upstreams.default.budget.per_s')).toBe('default');
  });

  it.each(Object.entries(ENVIRONMENT))('%s sets %s', (name, path) => {
    const [text, value] = (
      {
        DAWATCH_PORT: ['17', 17],
        DAWATCH_LOG_LEVEL: ['error', 'error'],
        DAWATCH_UPSTREAM_URL: ['https://u.example/p', 'https://u.example/p'],
        DAWATCH_REDIS_URL: ['redis://r:1', 'redis://r:1'],
        DAWATCH_WEBHOOK_ALLOW: ['10.0.0.0/8, fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
        DAWATCH_WEBHOOK_ALLOW_HTTP: ['true', true],
      } as Record<string, [string, unknown]>
    )[name] ?? ['a-long-enough-value', 'a-long-enough-value'];
    const loaded = load('', { [name]: text });
    const setting = loaded.settings.find((candidate) => candidate.path === path);
    expect(setting).toMatchObject({ source: name, value });
  });

  it('an empty variable is as good as none, the one that names the file included', () => {
    const env = Object.fromEntries(Object.keys(ENVIRONMENT).map((name) => [name, '']));
    const file = fileOf('server: { port: 5 }');
    expect(loadConfig({ env, file })).toEqual(loadConfig({ env: {}, file }));
    expect(loadConfig({ env: { DAWATCH_CONFIG: '' } }).config).toEqual(loadConfig({ env: {} }).config);
  });

  it('DAWATCH_CONFIG names the file; without it config/dawatch.yaml is read if there is one', () => {
    expect(loadConfig({ env: { DAWATCH_CONFIG: fileOf('server: { port: 5 }') } }).config.server.port).toBe(5);
    const before = process.cwd();
    process.chdir(tempFolder());
    onTestFinished(() => process.chdir(before));
    expect(loadConfig({ env: {} }).config.server.port).toBe(8080);
    mkdirSync('config');
    writeFileSync(SHIPPED, 'server: { port: 6 }');
    expect(loadConfig({ env: {} }).config.server.port).toBe(6);
  });

  it.each(['', '# nothing', 'server:\nupstreams:\n  default:\n', '---\n'])('%j is a file without settings', (yaml) => {
    expect(load(yaml).config).toEqual(load('{}').config);
  });

  it('more upstreams stand beside the default one, each with defaults of its own', () => {
    const { config, settings } = load('upstreams: { other-1: { url: "https://o.example", budget: { per_s: 60 } } }');
    expect(Object.keys(config.upstreams)).toEqual(['default', 'other-1']);
    expect(config.upstreams).toHaveProperty('other-1.budget', { requests: 50, per_s: 60, concurrency: 32 });
    expect(settings.map(({ path }) => path)).toContain('upstreams.other-1.timeout_s');
  });

  it('every setting is described', () => {
    for (const { path, description } of load('').settings) expect(description, path).not.toBe('');
  });

  it('channels and their routes', () => {
    const channels = `
      ops: { type: slack, url: https://hooks.slack.com/services/x }
      mail: { type: email, smtp_url: "smtp://h:25", from: a@b.example, to: [c@d.example], gather_s: 1 }`;
    const { config, settings } = load(`channels:${channels}\nroutes: [{ types: [alert.*], channels: [ops, mail] }]`);
    expect(config.channels).toMatchObject({
      ops: { type: 'slack', gather_s: 5 },
      mail: { type: 'email', gather_s: 1 },
    });
    expect(config.routes).toEqual([{ types: ['alert.*'], channels: ['ops', 'mail'] }]);
    const paths = settings.map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(['channels.ops.url', 'channels.mail.smtp_url', 'routes']));
    expect(paths.filter(isSecret)).toEqual(expect.arrayContaining(['channels.ops.url', 'channels.mail.smtp_url']));
  });

  it('which settings are secrets', () => {
    const secrets = load('')
      .settings.map(({ path }) => path)
      .filter(isSecret);
    expect(secrets.sort()).toEqual([
      'auth.admin_token',
      'auth.api_key',
      'redis.url',
      'upstreams.default.api_key',
      'upstreams.default.bearer',
    ]);
  });
});

describe('config/dawatch.yaml', () => {
  const shipped = readFileSync(SHIPPED, 'utf8');

  it('says what the defaults are', () => {
    expect(loadConfig({ env: {}, file: SHIPPED }).config).toEqual(load('').config);
  });

  it('names every setting where it belongs, and every environment variable', () => {
    const complete = parse(shipped.replace(/^(\s*)# ([a-z_]+): \S*…/gm, '$1$2: set'));
    for (const { path } of load('').settings) {
      const value = path.split('.').reduce((node, key) => node?.[key], complete);
      expect(value, path).toBeDefined();
    }
    for (const name of Object.keys(ENVIRONMENT)) expect(shipped).toContain(`[${name}]`);
  });
});

describe('what is wrong is told with its setting and its source', () => {
  it.each<[string, string, RegExp]>([
    ['an unknown section', 'sever: { port: 1 }', /"sever".*FILE/],
    ['an unknown name', 'server: { prot: 1 }', /^server: .*"prot".*FILE/],
    [
      'an unknown name in an upstream',
      'upstreams: { a: { budget: { rps: 1 } } }',
      /^upstreams\.a\.budget: .*"rps".*FILE/,
    ],
    ['text for a number', 'server: { port: "80" }', /^server\.port: .*number.*FILE/],
    ['a port there cannot be', 'server: { port: 65536 }', /^server\.port: .*65535.*FILE/],
    ['a number for a section', 'server: 80', /^server: .*object.*FILE/],
    ['a list for upstreams', 'upstreams: [http://u]', /^upstreams: .*FILE/],
    ['infinity', 'upstreams: { default: { timeout_s: .inf } }', /^upstreams\.default\.timeout_s: .*FILE/],
    ['no time at all', 'upstreams: { default: { timeout_s: 0 } }', /^upstreams\.default\.timeout_s: .*FILE/],
    ['a name no upstream can have', 'upstreams: { "Bad Name": {} }', /^upstreams\.Bad Name: .*a-z.*FILE/],
    ['an address without a protocol', 'upstreams: { a: { url: u.example } }', /^upstreams\.a\.url: an http.*FILE/],
    ['another protocol', 'upstreams: { a: { url: "ftp://u" } }', /^upstreams\.a\.url: an http.*FILE/],
    ['a path without its slash', 'upstreams: { a: { users: { get_path: users } } }', /get_path: a path that.*FILE/],
    ['a path with a query', 'upstreams: { a: { users: { list_path: "/a?b" } } }', /list_path: .*without a query.*FILE/],
    ['a ceiling of no users', 'users: { max_limit: 0 }', /^users\.max_limit: .*FILE/],
    [
      'an origin with a path',
      'server: { cors_origins: ["https://a.example/"] }',
      /^server\.cors_origins\.0: an origin.*FILE/,
    ],
    ['every origin', 'server: { cors_origins: ["*"] }', /^server\.cors_origins\.0: an origin.*FILE/],
    ['a limit below nothing', 'limits: { requests_per_minute: -1 }', /^limits\.requests_per_minute: .*FILE/],
    ['least above most', 'pacing: { min_interval_s: 9, max_interval_s: 8 }', /^pacing: .*min_interval_s.*FILE/],
    ['no range of addresses', 'webhooks: { allow: [10.0.0.1] }', /^webhooks\.allow\.0: a range.*FILE/],
    ['an unknown kind of channel', 'channels: { a: { type: fax } }', /^channels\.a\.type: .*FILE/],
    ['a channel without its address', 'channels: { a: { type: slack } }', /^channels\.a\.url: .*FILE/],
    [
      'a channel called queue',
      'channels: { queue: { type: slack, url: "https://s" } }',
      /^channels\.queue: .*taken.*FILE/,
    ],
    ['a route to nowhere', 'routes: [{ types: ["*"], channels: [b] }]', /^routes\.0\.channels: .*"b".*FILE/],
    [
      'an unknown event',
      'channels: { b: { type: slack, url: "https://s" } }\nroutes: [{ types: [blocks.*], channels: [b] }]',
      /^routes\.0\.types\.0: .*"blocks.*FILE/,
    ],
    ['a list for everything', '- 1', /FILE: expected settings/],
    ['broken YAML', 'server: { port: 1', /FILE: .*line 1/],
    ['the same name twice', 'server: { port: 1 }\nserver: {}', /FILE: .*unique/],
  ])('%s', (_name, yaml, expected) => {
    const [first, ...others] = problems(yaml);
    expect(first).toMatch(expected);
    expect(others).toEqual([]);
  });

  it.each([
    ['DAWATCH_PORT', 'http'],
    ['DAWATCH_PORT', ' '],
    ['DAWATCH_PORT', '-1'],
    ['DAWATCH_PORT', '1e3'],
    ['DAWATCH_LOG_LEVEL', 'loud'],
    ['DAWATCH_UPSTREAM_URL', 'upstream:80'],
    ['DAWATCH_API_KEY', 'short'],
    ['DAWATCH_REDIS_URL', 'localhost:6379'],
    ['DAWATCH_WEBHOOK_ALLOW', 'everybody'],
    ['DAWATCH_WEBHOOK_ALLOW', '10.0.0.0/8,'],
    ['DAWATCH_WEBHOOK_ALLOW_HTTP', 'yes'],
    ['DAWATCH_UPSTREAM_API_KEY', 'a b\n'],
    ['DAWATCH_UPSTREAM_BEARER', 'Bearer a.b.c'],
  ] as const)('%s=%j', (name, value) => {
    expect(problems('', { [name]: value })).toEqual([
      expect.stringMatching(new RegExp(`^${ENVIRONMENT[name]}(\\.\\d)?: .*${name}`)),
    ]);
  });

  it('a variable does not hide that its section in the file is wrong', () => {
    expect(problems('server: 80', { DAWATCH_PORT: '81' })).toEqual([expect.stringMatching(/^server: .*object.*FILE/)]);
  });

  it('all at once', () => {
    const yaml = 'server: { port: x, prot: 1 }\nbreaker: { failures: 0 }';
    const names = problems(yaml, { DAWATCH_LOG_LEVEL: 'loud' }).map((problem) => problem.split(':')[0]);
    expect(names.sort()).toEqual(['breaker.failures', 'log.level', 'server', 'server.port']);
  });

  it.each(['nowhere.yaml', '.'])('a file that cannot be read (%s)', (name) => {
    const file = join(tempFolder(), name);
    expect(() => loadConfig({ env: {}, file })).toThrow(ConfigError);
    expect(() => loadConfig({ env: { DAWATCH_CONFIG: file } })).toThrow(file);
  });
});

describe('no secret is in what is told', () => {
  it.each([
    `https://user:${SECRET}@u.example`,
    `https://:${SECRET}@u.example`,
    `https://${SECRET}@u.example`,
    `https://u.example/?key=${SECRET}`,
    `https://u.example/#${SECRET}`,
  ])('an address with credentials is refused: %s', (url) => {
    expect(problems('', { DAWATCH_UPSTREAM_URL: url })).toEqual([expect.stringMatching(/without credentials/)]);
  });

  it.each([
    `auth: { api_key: "${SECRET} ${SECRET}" }`,
    `auth: { api_key: [${SECRET}] }`,
    `auth: { api_key: "${SECRET} }`,
    `auth:\n  api_key: *${SECRET}`,
    `auth:\n  api_key: @${SECRET}`,
    `auth:\n  api_key: %${SECRET}`,
    `auth:\n  api_key: ${SECRET}: x`,
    `auth:\n  api_key:${SECRET}\n  other: 1`,
    `auth:\n\tapi_key: ${SECRET}`,
    `auth: { api_key: "\\q${SECRET}" }`,
  ])('a key that was written wrongly: %j', (yaml) => {
    expect(problems(yaml).length).toBeGreaterThan(0);
  });

  it('nor in a warning of the YAML reader', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    problems(`auth:\n  api_key: !${SECRET} x`);
    expect(JSON.stringify(warn.mock.calls)).not.toContain(SECRET);
  });
});

describe('a file of settings that is meant to do harm is refused:', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...[...'bcdefghi'].map((name, n) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[n]}`)}]`),
  ];
  it.each<[string, string]>([
    ['another prototype', '__proto__: { auth: { api_key: "0123456789abcdef" } }'],
    ['another prototype of a section', 'server: { __proto__: { port: 1 } }'],
    ['a constructor', 'constructor: { prototype: { port: 1 } }'],
    ['aliases that would unfold to billions', bomb.join('\n')],
    ['100,000 levels', `server: ${'['.repeat(100_000)}`],
    ['a name twice', 'server: { port: 1 }\nserver: { port: 2 }'],
  ])('%s', (_, yaml) => {
    expect(problems(yaml).length).toBeGreaterThan(0);
    expect(Object.hasOwn(Object.prototype, 'port')).toBe(false);
  });
});
