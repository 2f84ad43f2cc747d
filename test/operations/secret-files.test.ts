import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ConfigError, ENVIRONMENT, secretsOf } from '../../src/operations/config/load.ts';
import { fileVariables, SECRET_SETTING } from '../../src/operations/config/settings-file.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { cli } from '../support/processes/cli.ts';
import { tempFolder } from '../support/temp-folder.ts';

const SECRET = 'hunter2-must-never-be-shown-anywhere';

function file(content: string | Buffer, name = 'secret'): string {
  const path = join(tempFolder(), name);
  writeFileSync(path, content);
  return path;
}

/** A pipe into which another process writes what this command prints. */
function pipeFrom(command: string): string {
  const path = join(tempFolder(), 'pipe');
  execFileSync('mkfifo', [path]);
  const writer = spawn('sh', ['-c', `${command} > ${path}`], { stdio: 'ignore' });
  onTestFinished(() => void writer.kill());
  return path;
}

function linkTo(target: string): string {
  const path = join(tempFolder(), 'link');
  symlinkSync(target, path);
  return path;
}

const load = (yaml: string, env: Record<string, string> = {}) =>
  loadConfig({ env, file: file(yaml, 'settings.yaml') });

/** Returns the problems of these settings; asserts that they contain no secret. */
function problems(yaml: string, env: Record<string, string> = {}): string[] {
  try {
    load(yaml, env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    expect(error.message).not.toContain(SECRET);
    return [...error.problems];
  }
  return [];
}

describe('a secret in a file', () => {
  it.each(Object.entries(fileVariables(ENVIRONMENT)))('is read for %s', (name, path) => {
    const addresses: Record<string, string> = {
      DAWATCH_REDIS_URL_FILE: 'redis://:pass@r:1',
      DAWATCH_HEARTBEAT_URL_FILE: 'https://h.example/key',
      DAWATCH_CHAIN_URL_FILE: 'wss://user:a-password@n.example',
    };
    const secret = addresses[name] ?? `${SECRET}-of-32-bytes-at-least`;
    const loaded = load('', { [name]: file(`${secret}\n`) });
    const setting = loaded.settings.find(
      (candidate) => candidate.path === path.replace(/_file$/, ''),
    );
    const value = name === 'DAWATCH_CHAIN_URL_FILE' ? [secret] : secret;
    expect(setting).toMatchObject({ source: name, value });
    expect(secretsOf(loaded.settings)).toContain(secret);
  });

  it('is read for settings below a name that the operator chose', () => {
    const { config, settings } = load(`
upstreams:
  archive: { url: "https://a.example", api_key_file: ${file('archive-key')} }
channels:
  ops: { type: slack, url_file: ${file('https://hooks.slack.example/T/B/x\r\n')} }
  mail: { type: email, from: a@b.example, to: [c@d.example], smtp_url_file: ${file('smtps://u:p@m.example')} }
`);
    expect(config.upstreams).toMatchObject({ archive: { api_key: 'archive-key' } });
    expect(config.channels).toMatchObject({
      ops: { url: 'https://hooks.slack.example/T/B/x' },
      mail: { smtp_url: 'smtps://u:p@m.example' },
    });
    expect(settings.find(({ path }) => path === 'channels.ops.url')?.source).toMatch(
      /settings\.yaml, url_file$/,
    );
  });

  it('in the environment overrides the settings file, in either form', () => {
    const inFile = `auth: { service_key: from-the-settings-file-0123456789 }`;
    const named = `auth: { service_key_file: ${file('from-a-file-of-the-settings-0123456789')} }`;
    const own = { DAWATCH_SERVICE_KEY_FILE: file('from-the-file-variable-0123456789') };
    expect(load(inFile, own).config.auth.service_key).toBe('from-the-file-variable-0123456789');
    expect(load(named, own).config.auth.service_key).toBe('from-the-file-variable-0123456789');
    expect(
      load(named, { DAWATCH_SERVICE_KEY: 'from-the-variable-itself-0123456789' }).config.auth
        .service_key,
    ).toBe('from-the-variable-itself-0123456789');
    expect(load(named).config.auth.service_key).toBe('from-a-file-of-the-settings-0123456789');
  });

  it('is checked like a secret in the settings', () => {
    const short = file('short');
    expect(problems('', { DAWATCH_SERVICE_KEY_FILE: short })).toEqual([
      expect.stringMatching(/^auth\.service_key .*32.* \(DAWATCH_SERVICE_KEY_FILE\)$/),
    ]);
  });

  it('and the secret itself exclude each other', () => {
    const env = { DAWATCH_SERVICE_KEY: SECRET, DAWATCH_SERVICE_KEY_FILE: file(SECRET) };
    expect(problems('', env)).toEqual([
      'DAWATCH_SERVICE_KEY_FILE: DAWATCH_SERVICE_KEY is set, too; set only one of them',
    ]);
    const [problem] = problems(
      `auth: { service_key: ${SECRET}, service_key_file: ${file(SECRET)} }`,
    );
    expect(problem).toMatch(
      /^auth\.service_key_file: auth\.service_key is set, too; set only one of them \(.*settings\.yaml\)$/,
    );
  });

  it.each([
    ['does not exist', () => join(tempFolder(), 'none'), 'names a file that does not exist'],
    ['is a folder', () => tempFolder(), 'names a file that is a directory, not a file'],
    ['is empty', () => file(''), 'names an empty file'],
    ['has two lines', () => file(`${SECRET}\n${SECRET}\n`), 'it must be one line'],
    ['is large', () => file('x'.repeat(20_000)), 'larger than 16384 bytes'],
    ['is a pipe without an end', () => pipeFrom('cat /dev/zero'), 'larger than 16384 bytes'],
    [
      'is a device without an end',
      () => '/dev/zero',
      'names a file that is neither a file nor a pipe',
    ],
    ['is a link to a device', () => linkTo('/dev/random'), 'is neither a file nor a pipe'],
  ])('that %s is an error with the variable', (_what, make, reason) => {
    const path = make();
    const [problem = '', ...more] = problems('', { DAWATCH_SERVICE_KEY_FILE: path });
    expect(problem).toMatch(/^auth\.service_key_file names /);
    expect(problem).not.toContain(path);
    expect(problem).toContain(reason);
    expect(problem).toContain('(DAWATCH_SERVICE_KEY_FILE)');
    expect(more).toEqual([]);
  });

  it('is read through links, as Kubernetes mounts it, and from a pipe', () => {
    const secret = `${SECRET}-of-32-bytes-at-least`;
    for (const path of [linkTo(linkTo(file(`${secret}\n`))), pipeFrom(`echo ${secret}`)])
      expect(load('', { DAWATCH_SERVICE_KEY_FILE: path }).config.auth.service_key).toBe(secret);
  });

  it('is not quoted if it is set instead of the name of its file', () => {
    expect(problems('', { DAWATCH_SERVICE_KEY_FILE: SECRET })).toEqual([
      'auth.service_key_file names a file that does not exist (DAWATCH_SERVICE_KEY_FILE)',
    ]);
  });

  it('may begin with a byte order mark', () => {
    expect(
      load('', { DAWATCH_SERVICE_KEY_FILE: file('\uFEFFa-service-key-of-bytes-0123456789') }).config
        .auth.service_key,
    ).toBe('a-service-key-of-bytes-0123456789');
  });

  it.each([
    ['server: { host_file: /etc/hostname }', 'host_file'],
    ['auth: { service_key_file: 17 }', 'must be the path of a file'],
    ['auth: { service_key_file: [a] }', 'must be the path of a file'],
    ['auth: { api_kye_file: /x }', 'api_kye_file'],
  ])('%s is an error', (yaml, text) => {
    expect(problems(yaml).join('\n')).toContain(text);
  });
});

it.each([
  ['a device without an end', () => '/dev/zero', /^\/dev\/zero: is neither a file nor a pipe$/],
  ['large', () => file('x: '.repeat(400_000)), /: is larger than 1048576 bytes$/],
])('a settings file that is %s is an error', (_, make, problem) => {
  expect(() => loadConfig({ env: {}, file: make() })).toThrow(
    expect.objectContaining({ problems: [expect.stringMatching(problem)] }),
  );
});

it('the Helm chart refuses the same settings as secrets', () => {
  const chart = readFileSync('deploy/helm/dawatch/templates/_helpers.tpl', 'utf8');
  const [, pattern = ''] = /regexMatch ("[^"]+") \$path/.exec(chart) ?? [];
  expect(JSON.parse(pattern)).toBe(SECRET_SETTING.source);
});

it('dawatch config shows the source of a secret in a file, not the secret', async () => {
  const { stdout, code } = await cli(['config'], {
    env: { DAWATCH_SERVICE_KEY_FILE: file(SECRET) },
  });
  expect(code).toBe(0);
  expect(stdout).toMatch(/auth\.service_key +\*+ +DAWATCH_SERVICE_KEY_FILE/);
  expect(stdout).not.toContain(SECRET);
});

it('a command reads its admin token from a file', async () => {
  const env = {
    DAWATCH_ADMIN_TOKEN_FILE: join(tempFolder(), 'none'),
    DAWATCH_URL: 'http://127.0.0.1:1',
  };
  const { code, stderr } = await cli(['token', 'list'], { env });
  expect(code).not.toBe(0);
  expect(stderr).toContain('DAWATCH_ADMIN_TOKEN_FILE names a file that does not exist');
});

describe('a process reads only the secret files that it uses:', () => {
  const MISSING = '/not/mounted';
  /** Settings with every secret in a file; those that `mounted` matches exist. */
  function settings(mounted: RegExp): string {
    const secret = (path: string, content: string) =>
      mounted.test(path) ? file(content) : MISSING;
    return `
auth: { service_key_file: ${secret('auth.service_key', SECRET)}, admin_token_file: ${secret('auth.admin_token', SECRET)} }
upstreams:
  default:
    url: http://127.0.0.1:1
    api_key_file: ${secret('upstreams.default.api_key', SECRET)}
    bearer_file: ${secret('upstreams.default.bearer', SECRET)}
    headers: { X-Gateway_file: ${secret('upstreams.default.headers.X-Gateway', SECRET)} }
channels:
  ops: { type: slack, url_file: ${secret('channels.ops.url', 'https://a.example')} }
  mail: { type: email, from: a@b.example, to: [c@d.example], smtp_url_file: ${secret('channels.mail.smtp_url', 'smtp://a')} }
  chat: { type: telegram, chat_id: 1, token_file: ${secret('channels.chat.token', `1:${'a'.repeat(35)}`)} }
  phone: { type: ntfy, topic_file: ${secret('channels.phone.topic', 'a-topic')} }
  night: { type: pagerduty, routing_key_file: ${secret('channels.night.routing_key', 'a'.repeat(32))} }
routes: [{ types: ['*'], channels: [ops, mail] }]
redis:
  url_file: ${secret('redis.url', 'redis://127.0.0.1:1')}
`;
  }
  const ALL = [
    ...['auth.admin_token', 'auth.service_key', 'channels.mail.smtp_url', 'channels.ops.url'],
    ...['channels.chat.token', 'channels.phone.topic', 'channels.night.routing_key'],
    ...['redis.url', 'upstreams.default.api_key', 'upstreams.default.bearer'],
    'upstreams.default.headers.X-Gateway',
  ];

  it.each([
    ['server', ALL],
    ['worker', ['redis.url', 'upstreams.default.api_key', 'upstreams.default.headers.X-Gateway']],
    ['worker_check', ['redis.url']],
    ['client', ['auth.service_key']],
    ['none', []],
  ] as const)('%s reads %j', (user, used) => {
    const yaml = settings(
      new RegExp(`^(?:${used.map((path) => path.replaceAll('.', '\\.')).join('|')})$`),
    );
    const loaded = loadConfig({ env: {}, file: file(yaml, 'settings.yaml'), user });
    const known = new Map(loaded.settings.map(({ path, value }) => [path, value]));
    expect(ALL.filter((path) => known.get(path) !== undefined)).toEqual(used);
    // Settings that are no secrets are checked and known nevertheless.
    expect(known.get('channels.mail.to')).toEqual(['c@d.example']);
    expect(JSON.stringify(loaded)).not.toContain('not-read');
  });

  it('a missing file that it uses is an error', () => {
    for (const user of ['server', 'worker', 'worker_check', 'client'] as const)
      expect(() =>
        loadConfig({ env: {}, file: file(settings(/^$/), 'settings.yaml'), user }),
      ).toThrow('does not exist');
  });

  it('commands of the ledger read none, commands of the server the service key or none, a worker not those of the server', async () => {
    const folder = tempFolder();
    const server = { DAWATCH_URL: 'http://127.0.0.1:1', DAWATCH_API_KEY: null };
    const env = {
      DAWATCH_CONFIG: file(settings(/^auth\.service_key$/), 'settings.yaml'),
      ...server,
    };
    const database = { DAWATCH_DATABASE: join(folder, 'l.db') };
    expect((await cli(['list'], { env })).stderr).toContain('no response from http://127.0.0.1:1');
    expect(
      (await cli(['token', 'list'], { env: { ...env, DAWATCH_ADMIN_TOKEN_FILE: file(SECRET) } }))
        .stderr,
    ).toContain('no response from http://127.0.0.1:1');
    const without = { ...env, DAWATCH_CONFIG: file(settings(/^$/), 'settings.yaml') };
    expect((await cli(['list'], { env: without })).stderr).toContain(
      'auth.service_key_file names a file that does not',
    );
    const create = ['token', 'create', '--role', 'user', '--name', 'x'];
    const created = await cli(create, { env: { ...without, ...database } });
    expect(created.stderr).not.toContain('names a file');
    const checked = { ...without, DAWATCH_CONFIG: file(settings(/^redis/), 'settings.yaml') };
    expect((await cli(['worker', '--check'], { env: checked })).stderr).toBe(
      'dawatch: Redis does not respond\n',
    );
  });
});
