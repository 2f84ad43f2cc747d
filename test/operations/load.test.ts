import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { channelSchema } from '../../src/notifications/channels/index.ts';
import { ConfigError, ENVIRONMENT } from '../../src/operations/config/load.ts';
import { isSecret } from '../../src/operations/config/settings-file.ts';
import { type LoadedConfig, loadConfig } from '../../src/wiring/settings.ts';
import { tempFolder } from '../support/temp-folder.ts';

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

/**
 * Returns the problems of these settings; asserts that they contain no secret, and the temporary
 * folder only as a source.
 */
function problems(yaml: string, env: Record<string, string> = {}): string[] {
  try {
    load(yaml, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message).not.toContain(SECRET);
    expect(error.message).toContain(error.problems.join('\n  '));
    return error.problems.map((problem) => problem.replace(/[^\s(]*settings\.yaml/g, 'FILE'));
  }
  return [];
}

const sourceOf = ({ settings }: LoadedConfig, path: string) =>
  settings.find((setting) => setting.path === path)?.source;

describe('the effective settings', () => {
  it('the environment overrides the file, the file overrides the defaults, and each setting has its source', () => {
    const loaded = load(
      'server: { host: 10.0.0.1, port: 1 }\nupstreams: { default: { url: "http://file" } }',
      {
        DAWATCH_PORT: '2',
        DAWATCH_UPSTREAM_API_KEY: 'k',
      },
    );
    expect(loaded.config.server).toMatchObject({ host: '10.0.0.1', port: 2 });
    expect(loaded.config.upstreams.default).toMatchObject({
      url: 'http://file',
      api_key: 'k',
      timeout_s: 10,
    });
    expect(sourceOf(loaded, 'server.port')).toBe('DAWATCH_PORT');
    expect(sourceOf(loaded, 'server.host')).toMatch(/settings\.yaml$/);
    expect(sourceOf(loaded, 'server.public_url')).toBe('default');
    expect(sourceOf(loaded, 'upstreams.default.url')).toMatch(/settings\.yaml$/);
    expect(sourceOf(loaded, 'upstreams.default.api_key')).toBe('DAWATCH_UPSTREAM_API_KEY');
    expect(sourceOf(loaded, 'upstreams.default.budget.per_s')).toBe('default');
  });

  it.each(Object.entries(ENVIRONMENT))('%s sets %s', (name, path) => {
    const [text, value] = (
      {
        DAWATCH_PORT: ['17', 17],
        DAWATCH_CHAIN_URL: ['wss://a.example, ws://b/p?k=1', ['wss://a.example', 'ws://b/p?k=1']],
        DAWATCH_LOG_LEVEL: ['error', 'error'],
        DAWATCH_UPSTREAM_URL: ['https://u.example/p', 'https://u.example/p'],
        DAWATCH_PUBLIC_URL: ['https://d.example/p', 'https://d.example/p'],
        DAWATCH_HEARTBEAT_URL: ['https://h.example/p', 'https://h.example/p'],
        DAWATCH_OIDC_ISSUER: ['https://i.example/p', 'https://i.example/p'],
        DAWATCH_REDIS_URL: ['REDISS://U:P@r:1', 'rediss://U:P@r:1'],
        DAWATCH_TRUSTED_PROXIES: [
          'loopback, 10.0.0.7,fd00::/8',
          ['loopback', '10.0.0.7', 'fd00::/8'],
        ],
        DAWATCH_WEBHOOK_ALLOW: ['10.0.0.7, fd00::/8', ['10.0.0.7', 'fd00::/8']],
        DAWATCH_WEBHOOK_ALLOW_HTTP: ['true', true],
      } as Record<string, [string, unknown]>
    )[name] ?? ['a-value-that-is-long-enough-for-all', 'a-value-that-is-long-enough-for-all'];
    const provider =
      'server: { public_url: "https://d.example" }\noidc: { client_id: a, roles: { admin: [a] } }';
    const required = name === 'DAWATCH_OIDC_ISSUER' ? provider : '';
    const loaded = load(required, { [name]: text });
    const setting = loaded.settings.find((candidate) => candidate.path === path);
    expect(setting).toMatchObject({ source: name, value });
  });

  it('an empty variable counts as unset, including the variable that names the file', () => {
    const env = Object.fromEntries(Object.keys(ENVIRONMENT).map((name) => [name, '']));
    const file = fileOf('server: { port: 5 }');
    expect(loadConfig({ env, file })).toEqual(loadConfig({ env: {}, file }));
    expect(loadConfig({ env: { DAWATCH_CONFIG: '' } }).config).toEqual(
      loadConfig({ env: {} }).config,
    );
  });

  it('DAWATCH_CONFIG names the file; without it config/dawatch.yaml is read if it exists', () => {
    expect(
      loadConfig({ env: { DAWATCH_CONFIG: fileOf('server: { port: 5 }') } }).config.server.port,
    ).toBe(5);
    const before = process.cwd();
    process.chdir(tempFolder());
    onTestFinished(() => process.chdir(before));
    expect(loadConfig({ env: {} }).config.server.port).toBe(8080);
    mkdirSync('config');
    writeFileSync(SHIPPED, 'server: { port: 6 }');
    expect(loadConfig({ env: {} }).config.server.port).toBe(6);
  });

  it.each(['', '# nothing', 'server:\nupstreams:\n  default:\n', '---\n'])(
    '%j is a file without settings',
    (yaml) => {
      expect(load(yaml).config).toEqual(load('{}').config);
    },
  );

  it('the merge key of YAML inserts the settings of an alias', () => {
    const { config } = load(
      'upstreams:\n  a: &a { url: "https://a", timeout_s: 3 }\n  b: { <<: *a, timeout_s: 5 }',
    );
    expect(config.upstreams).toMatchObject({ b: { url: 'https://a', timeout_s: 5 } });
  });

  it('additional upstreams exist beside the default one, each with its own defaults', () => {
    const { config, settings } = load(
      'upstreams: { other-1: { url: "https://o.example", budget: { per_s: 60 } } }',
    );
    expect(Object.keys(config.upstreams)).toEqual(['default', 'other-1']);
    expect(config.upstreams).toHaveProperty('other-1.budget', {
      requests: 50,
      per_s: 60,
      concurrency: 32,
    });
    expect(settings.map(({ path }) => path)).toContain('upstreams.other-1.timeout_s');
  });

  const CHANNELS: Record<string, object> = {
    ...Object.fromEntries(
      ['slack', 'discord', 'teams', 'apprise'].map((type) => [type, { type, url: 'https://h' }]),
    ),
    telegram: { type: 'telegram', token: `1:${'a'.repeat(35)}`, chat_id: 1 },
    ntfy: { type: 'ntfy', topic: 'a-topic' },
    pagerduty: { type: 'pagerduty', routing_key: 'a'.repeat(32) },
    mail: { type: 'email', smtp_url: 'smtp://h', from: 'a@b.example', to: ['a@b.example'] },
  };
  const addresses = () =>
    load(JSON.stringify({ channels: CHANNELS }))
      .settings.map(({ path }) => path)
      .filter((path) => /urls?$|issuer$/.test(path));

  /** Returns the problems of this address in a setting, without those of other settings. */
  function addressProblems(path: string, address: string): string[] {
    const [name = '', ...sections] = path.split('.').toReversed();
    const value = name === 'urls' ? [address] : address;
    const nested = sections.reduce<object>((inner, section) => ({ [section]: inner }), {
      ...(path.startsWith('channels.') && CHANNELS[sections[0] ?? '']),
      [name]: value,
    });
    return problems(JSON.stringify(nested)).filter((problem) => problem.startsWith(path));
  }

  it('every address that may have a login is a secret; the others refuse one', () => {
    expect(addresses().length).toBeGreaterThan(8);
    for (const path of addresses().filter((one) => !isSecret(one)))
      expect(addressProblems(path, `https://${SECRET}@h.example`), path).toEqual([
        expect.stringMatching(/ must be .* without user/),
      ]);
  });

  it('a login from which a library would derive other parts is refused in every address, and accepted when it is encoded', () => {
    const schemes: [RegExp, string][] = [
      [/^redis/, 'redis'],
      [/smtp_url$/, 'smtp'],
      [/urls$/, 'wss'],
    ];
    const wrong = ['12/34', '12?34', '12#34', '12\\34', '/34', 'a/b', '1@2/3', '5%', '%zz', '%E4'];
    for (const path of addresses()) {
      const [, scheme = 'https'] = schemes.find(([pattern]) => pattern.test(path)) ?? [];
      const problemsOf = (password: string) =>
        addressProblems(path, `${scheme}://user:${password}@h.example`);
      for (const password of wrong)
        expect(problemsOf(`${password}${SECRET}`), `${path} ${password}`).toEqual([
          expect.stringMatching(/ must be .* write % as %25, \/ as %2F, /),
        ]);
      if (isSecret(path)) expect(problemsOf('12%2F34%3F%23%25%40'), path).toEqual([]);
    }
  });

  it('mark the settings that are secrets', () => {
    const secrets = load('')
      .settings.map(({ path }) => path)
      .filter(isSecret);
    expect(secrets.sort()).toEqual([
      'auth.admin_token',
      'auth.service_key',
      'heartbeat.url',
      'oidc.client_secret',
      'redis.url',
      'upstreams.default.api_key',
      'upstreams.default.bearer',
      'upstreams.default.chain.urls',
    ]);
  });
});

describe('config/dawatch.yaml', () => {
  const shipped = readFileSync(SHIPPED, 'utf8');

  it('returns the defaults', () => {
    expect(loadConfig({ env: {}, file: SHIPPED }).config).toEqual(load('').config);
  });

  it('lists every setting in its section, and every environment variable', () => {
    const complete = parse(shipped.replace(/^(\s*)# ([a-z_]+): \S*…/gm, '$1$2: set'));
    for (const { path } of load('').settings) {
      const value = path.split('.').reduce((node, key) => node?.[key], complete);
      expect(value, path).toBeDefined();
    }
    for (const name of Object.keys(ENVIRONMENT)) expect(shipped).toContain(`[${name}]`);
    for (const { properties = {} } of z.toJSONSchema(channelSchema, { io: 'input' }).oneOf ?? [])
      for (const name of Object.keys(properties)) expect(shipped).toContain(` ${name}: `);
  });
});

describe('a problem is reported with its setting and source', () => {
  const upstream = (fields: string) => `upstreams: { a: { ${fields} } }`;
  const address = /^ must be an http/;
  it.each<[string, RegExp]>([
    ['sever: { port: 1 }', /^sever is not a setting \(FILE:1\)$/],
    ['server: { prot: 1 }', /^server\.prot is not a setting \(FILE:1\)$/],
    [upstream('budget: { rps: 1 }'), /^upstreams\.a\.budget\.rps is not a setting.*FILE/],
    ['server: { port: "80" }', /^server\.port must be a number, not a string \(FILE:1\)$/],
    ['server: { port: 65536 }', /^server\.port must be at most 65535 \(FILE:1\)$/],
    ['upstreams: { default: { timeout_s: .inf } }', /^upstreams\.default\.timeout_s .*FILE/],
    ['upstreams: { "Bad Name": {} }', /^upstreams\.Bad Name .*a-z.*FILE/],
    [
      upstream('url: u.example'),
      /^upstreams\.a\.url must be an address that begins with http.*FILE/,
    ],
    ...(
      [
        ['"wss://n", "https://n"', /1 must be an address that begins with ws:\/\/ or wss:\/\//],
        ['n.example', /0 must be an address that begins with ws:\/\/ or wss:\/\//],
      ] as const
    ).map(([urls, problem]): [string, RegExp] => [
      upstream(`chain: { urls: [${urls}] }`),
      new RegExp(`^upstreams\\.a\\.chain\\.urls\\.${problem.source}`),
    ]),
    ...(
      [
        ['https://e.example/block/{hash}', /^ must use only the placeholders \{block_number\}, /],
        ['https://e.example/block', /^ must contain a placeholder/],
        ['https://e.example/{block_hash}}', address],
        ['https://u:p@e.example/{block_hash}', /^ must be an address without a user/],
      ] as const
    ).map(([template, problem]): [string, RegExp] => [
      upstream(`chain: { explorer: "${template}" }`),
      new RegExp(`^upstreams\\.a\\.chain\\.explorer${problem.source.slice(1)}`),
    ]),
    [upstream('users: { get_path: users }'), /get_path must be a path that.*FILE/],
    [upstream('users: { list_path: "/a?b" }'), /list_path .*without a query.*FILE/],
    [
      'server: { cors_origins: ["https://a/"] }',
      /^server\.cors_origins\.0 must be an origin.*FILE/,
    ],
    ...['h/mydb', 'h/1/2', 'h?db=1'].map((end): [string, RegExp] => [
      `redis: { url: "redis://${end}" }`,
      /^redis\.url must end with its host, or with the number of a database.*FILE/,
    ]),
    ...['redis:h', 'redis:///0', 'http://h'].map((url): [string, RegExp] => [
      `redis: { url: "${url}" }`,
      /^redis\.url must be an address that begins with redis:\/\/ or rediss:.*FILE/,
    ]),
    ['heartbeat: { url: "https://h/#a" }', /^heartbeat\.url must be .*without a fragment.*FILE/],
    ['server: { public_url: "https://u:p@d.example" }', /^server\.public_url .*without user.*FILE/],
    [
      'webhooks: { allow: [10.0.0] }',
      /^webhooks\.allow\.0 must be an IP address, or a range.*FILE/,
    ],
    ['channels: { a: { type: fax } }', /^channels\.a\.type must be one of slack.*FILE/],
    ['channels: { a: { type: slack } }', /^channels\.a\.url .*FILE/],
    ['channels: { queue: { type: slack, url: "https://s" } }', /^channels\.queue .*reserved.*FILE/],
    ['routes: [{ types: ["*"], channels: [b] }]', /^routes\.0\.channels .*"b".*FILE/],
    ...(
      [
        ['User-Agent: x', /^User-Agent must be another header: dawatch sets this one itself/],
        ['X-API-Key: x', /^X-API-Key must be another header/],
        ['"a\\r\\nb": x', /must be the name of a header/],
        [`A: "${SECRET}\\r\\nb: c"`, /^A must be printable ASCII without line breaks/],
        ['A: 1', /^A must be a string, not a number/],
        ['x-a: x, X-A: y', /^X-A must not be set twice/],
      ] as const
    ).map(([headers, problem]): [string, RegExp] => [
      upstream(`headers: { ${headers} }`),
      new RegExp(`^upstreams\\.a\\.headers\\.[^]*${problem.source.replace(/^\^/, '')}.*FILE`),
    ]),
    ['auth:\n  service_key: !env X', /FILE: has a tag such as !env, which .*…_file.* \(line 2\)$/],
    ['server: { <<: 1 }', /FILE: Merge sources must be maps/],
    ['server: { port: 1', /FILE: .*line 1/],
    ['server: { port: 1 }\nserver: {}', /FILE: .*unique/],
  ])('%j', (yaml, expected) => {
    const [first, ...others] = problems(yaml);
    expect(first).toMatch(expected);
    expect(others).toEqual([]);
  });

  it.each([
    ['DAWATCH_PORT', 'http'],
    ['DAWATCH_LOG_LEVEL', 'loud'],
    ['DAWATCH_UPSTREAM_URL', 'upstream:80'],
    ['DAWATCH_SERVICE_KEY', 'short'],
    ['DAWATCH_REDIS_URL', 'localhost:6379'],
    ['DAWATCH_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['DAWATCH_TRUSTED_PROXIES', '0.0.0.0/0'],
    ['DAWATCH_TRUSTED_PROXIES', 'loopback,'],
    ['DAWATCH_WEBHOOK_ALLOW', 'everybody'],
    ['DAWATCH_WEBHOOK_ALLOW_HTTP', 'yes'],
    ['DAWATCH_UPSTREAM_API_KEY', 'a b'],
    ['DAWATCH_UPSTREAM_BEARER', 'Bearer a.b.c'],
  ] as const)('%s=%j', (name, value) => {
    expect(problems('', { [name]: value })).toEqual([
      expect.stringMatching(
        new RegExp(`^${ENVIRONMENT[name].replaceAll('.', '\\.')}(\\.\\d)? must .* \\(${name}\\)$`),
      ),
    ]);
  });

  it.each(['nowhere.yaml', '.'])('if the file cannot be read (%s)', (name) => {
    const file = join(tempFolder(), name);
    expect(() => loadConfig({ env: {}, file })).toThrow(ConfigError);
    expect(() => loadConfig({ env: { DAWATCH_CONFIG: file } })).toThrow(file);
  });
});

describe('a mail channel', () => {
  const mail = (fields: string) =>
    `channels: { mail: { type: email, to: [a@b.example], ${fields} } }`;
  const server = 'smtp_url: "smtp://h.example"';

  it.each([
    'a@b',
    'dawatch <a@b.example>',
    'Watch, Inc. <a@b.example>',
    '\\"Watch\\" <a@b.example>',
  ])('is sent from %s', (from) => {
    expect(problems(mail(`${server}, from: "${from}"`))).toEqual([]);
  });

  it.each([
    ['from', 'not an address'],
    ['from', 'a@b.example, c@d.example'],
    ['from', 'a@b.example\\r\\nBcc: c@d.example'],
    ['from', 'dawatch <dawatch>'],
    ['smtp_url', `smtp://h.example?tls.rejectUnauthorized=${SECRET}`],
    ['tls', 'sometimes'],
  ])('is refused with %s %s', (name, value) => {
    const valid: Record<string, string> = { smtp_url: 'smtp://h.example', from: 'a@b.example' };
    const fields = Object.entries({ ...valid, [name]: value });
    const yaml = mail(fields.map(([key, text]) => `${key}: "${text}"`).join(', '));
    expect(problems(yaml)).toEqual([
      expect.stringMatching(new RegExp(`^channels\\.mail\\.${name} must be `)),
    ]);
  });
});

describe('no message contains a secret:', () => {
  it.each([
    `https://user:${SECRET}@u.example`,
    `https://${SECRET}@u.example`,
    `https://u.example/?key=${SECRET}`,
  ])('an address with credentials is refused: %s', (url) => {
    expect(problems('', { DAWATCH_UPSTREAM_URL: url })).toEqual([
      expect.stringMatching(/without user and query/),
    ]);
  });

  it.each([
    `auth: { service_key: "${SECRET} ${SECRET}" }`,
    `auth: { service_key: [${SECRET}] }`,
    `auth: { service_key: "${SECRET} }`,
    `auth:\n  service_key: *${SECRET}`,
    `auth:\n  service_key: ${SECRET}: x`,
    `auth:\n  service_key:${SECRET}\n  other: 1`,
    `auth: { service_key: "\\q${SECRET}" }`,
  ])('a mistyped key: %j', (yaml) => {
    expect(problems(yaml).length).toBeGreaterThan(0);
  });

  it('a warning of the YAML reader', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    problems(`auth:\n  service_key: !${SECRET} x`);
    expect(JSON.stringify(warn.mock.calls)).not.toContain(SECRET);
  });
});

describe('refuses a hostile settings file:', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...[...'bcdefghi'].map(
      (name, n) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[n]}`)}]`,
    ),
  ];
  it.each<[string, string]>([
    ['aliases that expand to billions of nodes', bomb.join('\n')],
    ['10,000 levels', `server: ${'['.repeat(10_000)}`],
    ['a repeated name', 'server: { port: 1 }\nserver: { port: 2 }'],
  ])('%s', (_, yaml) => {
    expect(problems(yaml).length).toBeGreaterThan(0);
    expect(Object.hasOwn(Object.prototype, 'port')).toBe(false);
  });
});

it.each<[string, RegExp]>([
  ['# first\nserver:\n  host: h\n  port: x\n', /^server\.port .* \(FILE:4\)$/],
  ['webhooks:\n  allow:\n    - 10.0.0.0/8\n    - all\n', /^webhooks\.allow\.1 .* \(FILE:4\)$/],
  ['server:\n  host: h\n  prot: 1\n', /^server\.prot .* \(FILE:3\)$/],
  ['server:\n  prot:\n', /^server\.prot is not a setting.* \(FILE:2\)$/],
  [
    'channels:\n  a:\n    type: email\n    from: a@b.c\n    to: [a@b.example]\n',
    /smtp_url is missing.*\(FILE:2\)$/,
  ],
])('a problem names the line of its setting: %j', (yaml, expected) => {
  expect(problems(yaml)).toEqual([expect.stringMatching(expected)]);
});

it.each([`auth: { service_key:${SECRET} }`, `auth: { "${SECRET}": 1 }`])(
  'a secret in the place of a setting name is refused and not shown: %s',
  (yaml) => {
    expect(problems(yaml)).toEqual([
      expect.stringMatching(/^auth\.\(hidden\) is not a setting \(FILE:1\)$/),
    ]);
  },
);

describe('a value in quotes, or a path that begins with ~, as tools without a shell pass it, is refused:', () => {
  const NAMES = [...Object.keys(ENVIRONMENT), 'DAWATCH_CONFIG', 'DAWATCH_URL', 'DAWATCH_TOKEN'];
  it.each(NAMES)('%s', (name) => {
    const shown = expectedRefusal(name, `"${SECRET}"`);
    expect(shown).toMatch(new RegExp(`^${name} must not be in quotes; remove them`));
    expect(shown.includes(SECRET)).toBe(!isHidden(name));
  });

  const isHidden = (name: string) =>
    name === 'DAWATCH_URL' ||
    name === 'DAWATCH_TOKEN' ||
    isSecret((ENVIRONMENT as Record<string, string>)[name] ?? '');

  /** Returns the only problem of a variable. */
  function expectedRefusal(name: string, text: string): string {
    try {
      loadConfig({ env: { [name]: text } });
    } catch (error) {
      if (error instanceof ConfigError && error.problems.length === 1)
        return error.problems[0] ?? '';
    }
    return expect.fail(`${name}=${text} is accepted`);
  }

  it.each(['DAWATCH_DATABASE', 'DAWATCH_CONFIG', 'DAWATCH_SERVICE_KEY_FILE', 'DAWATCH_TOKEN_FILE'])(
    '%s=~/x',
    (name) => {
      expect(expectedRefusal(name, '~/x')).toBe(
        `${name} must not begin with ~, which only a shell replaces; write ${homedir()} instead of ~`,
      );
      expect(expectedRefusal(name, '~dawatch/x')).toMatch(/; write the path from \/$/);
    },
  );

  it.each<[string, RegExp]>([
    ['file:///data/x.db', /must be a path, not an address; write the path: \/data\/x\.db$/],
    ['file:data/x.db', /must be a path, not an address; write the path: data\/x\.db$/],
    [':memory:', /must be the path of a file, because memory keeps nothing$/],
    ['$HOME/x.db', /must not contain a variable, which only a shell replaces; write its value$/],
    [`/data/\${NAME}.db`, /must not contain a variable/],
    ['%APPDATA%/x.db', /must not contain a variable/],
    ['"/data/x.db', /must not begin or end with a quote; remove it: \/data\/x\.db$/],
    ['“/data/x.db”', /must not begin or end with a quote; remove it: \/data\/x\.db$/],
  ])('a path that would begin another ledger: %s', (text, expected) => {
    expect(expectedRefusal('DAWATCH_DATABASE', text)).toMatch(expected);
  });

  it('a value in single quotes, or that ends with white space', () => {
    expect(expectedRefusal('DAWATCH_PORT', "'80'")).toMatch(/must not be in quotes; remove them/);
    expect(expectedRefusal('DAWATCH_PORT', '80\r')).toMatch(
      /must not begin or end with white space/,
    );
  });

  it('a list of quoted values', () => {
    expect(expectedRefusal('DAWATCH_WEBHOOK_ALLOW', '"10.0.0.1","10.0.0.2"')).toBe(
      'DAWATCH_WEBHOOK_ALLOW must not be in quotes; remove them: 10.0.0.1,10.0.0.2',
    );
  });

  it.each<[string, RegExp]>([
    [`database: '"/x.db"'`, /^database must not be in quotes; remove them: \/x.db \(FILE:1\)$/],
    ['database: ~/x.db', /^database must not begin with ~.*\(FILE:1\)$/],
    [
      `auth: { service_key: '"${SECRET}"' }`,
      /^auth\.service_key must not be in quotes; remove them \(FILE:1\)$/,
    ],
    [
      `oidc: { roles: { admin: ["'staff'"] } }`,
      /^oidc\.roles\.admin must not .*: staff \(FILE:1\)$/,
    ],
  ])('in a file: %s', (yaml, expected) => {
    expect(problems(yaml)).toEqual([expect.stringMatching(expected)]);
  });

  it('the content of a secret file', () => {
    const secret = join(tempFolder(), 'secret');
    writeFileSync(secret, `"${SECRET}"\n`);
    expect(problems('', { DAWATCH_SERVICE_KEY_FILE: secret })).toEqual([
      'auth.service_key_file names a file whose content must not be in quotes; remove them (DAWATCH_SERVICE_KEY_FILE)',
    ]);
  });
});

describe('a placeholder, which a shell or a template was to replace, is refused:', () => {
  const PLACEHOLDERS = [
    '!env KEY',
    `\${KEY}`,
    '$KEY',
    '%KEY%',
    '{{ .Values.key }}',
    `Bearer \${KEY}`,
  ];
  it.each(PLACEHOLDERS)('%s', (text) => {
    const refused = 'must not be a placeholder, which dawatch does not replace; write its value';
    const api_key = `upstreams: { default: { api_key: ${JSON.stringify(text)} } }`;
    const file = 'name a file in upstreams.default.api_key_file';
    const others = `${file}, or set DAWATCH_UPSTREAM_API_KEY`;
    expect(problems(api_key)).toEqual([`upstreams.default.api_key ${refused}, ${others} (FILE:1)`]);
    const header = `upstreams: { a: { headers: { X-Key: ${JSON.stringify(text)} } } }`;
    expect(problems(header)).toEqual([
      `upstreams.a.headers.X-Key ${refused}, name a file in upstreams.a.headers.X-Key_file (FILE:1)`,
    ]);
    expect(problems('', { DAWATCH_UPSTREAM_API_KEY: text })).toEqual([
      `DAWATCH_UPSTREAM_API_KEY ${refused}, ${others}`,
    ]);
    expect(problems(`oidc: { client_id: ${JSON.stringify(text)} }`)).toEqual([
      `oidc.client_id ${refused} (FILE:1)`,
    ]);
    const secret = join(tempFolder(), 'secret');
    writeFileSync(secret, text);
    expect(problems('', { DAWATCH_SERVICE_KEY_FILE: secret })).toEqual([
      expect.stringContaining(`names a file whose content ${refused}`),
    ]);
  });

  it('a part of an address', () => {
    expect(problems(`redis: { url: "redis://:\${PASSWORD}@h" }`)).toEqual([
      expect.stringMatching(/^redis\.url must not be a placeholder, .*, or set DAWATCH_REDIS_URL /),
    ]);
  });

  it.each(['pa$word', '$ecret', '100%', '!wow', '{x}', 'a${'])('%s is none', (text) => {
    expect(problems(`upstreams: { a: { api_key: ${JSON.stringify(text)} } }`)).toEqual([]);
  });
});

describe('variables that begin with DAWATCH_', () => {
  it('are refused without their values if dawatch has no such variable', () => {
    expect(problems('', { DAWATCH_APIKEY: SECRET })).toEqual([
      'DAWATCH_APIKEY is not a variable of dawatch',
    ]);
  });

  it('are accepted if they are variables of the command line, empty or named differently', () => {
    const env = {
      DAWATCH_URL: 'http://h',
      DAWATCH_TOKEN: 't',
      DAWATCH_WEBHOOK_SECRET: 's',
      DAWATCH_ODD: '',
      DAWATCHER: '1',
    };
    expect(problems('', env)).toEqual([]);
  });

  it('are ignored if Kubernetes sets them for a Service whose name begins with dawatch', () => {
    const address = 'tcp://10.0.0.7:8080';
    const { config } = load('', {
      DAWATCH_SERVICE_HOST: '10.0.0.7',
      DAWATCH_SERVICE_PORT: '8080',
      DAWATCH_SERVICE_PORT_HTTP_API: '8080',
      DAWATCH_PORT: address,
      DAWATCH_PORT_8080_TCP: address,
      DAWATCH_PORT_8080_TCP_PROTO: 'tcp',
      DAWATCH_PORT_8080_TCP_PORT: '8080',
      DAWATCH_PORT_8080_TCP_ADDR: '10.0.0.7',
      DAWATCH_REDIS_PORT: 'tcp://10.0.0.8:6379',
      DAWATCH_REDIS_SERVICE_HOST: '10.0.0.8',
      DAWATCH_REDIS_PORT_6379_TCP_ADDR: '10.0.0.8',
    });
    expect(config.server.port).toBe(8080);
    expect(problems('', { DAWATCH_REDIS_PORT: '6379' })).toEqual([
      expect.stringContaining('DAWATCH_REDIS_PORT is no'),
    ]);
  });
});
