import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import pkg from '../../package.json' with { type: 'json' };
import { startRedis } from '../support/redis/redis-server.ts';
import { freePort } from '../support/servers/free-port.ts';
import { CLIENT, openOidcProvider } from '../support/servers/oidc-provider.ts';
import { openSmtpReceiver } from '../support/servers/smtp-receiver.ts';
import { eventually } from '../support/until.ts';
import { removedAfterTests } from './support/folders.ts';
import { type Installed, installInto } from './support/installed.ts';
import { CLIENT_NODE, npxCliOf, SERVER_NODE } from './support/pack.ts';

const { server: tarball, npmCli, nodes } = inject('packages');
const ROOT = join(import.meta.dirname, '../..');
const COMMAND = 'node_modules/dawatch/main.js';
const API_KEY = 'a-service-key-for-tests-0123456789';
const folder = removedAfterTests();

// docs.install.ts runs it with the newest Node.
describe(`the installed server on Node ${SERVER_NODE}`, () => {
  const nodePath = nodes[SERVER_NODE] as string;
  let installed: Installed;
  beforeAll(() => {
    installed = installInto(folder, { tarball, npmCli, nodePath });
  });

  it('prints its version through npx', async () => {
    const { stdout, stderr } = await installed.run(
      npxCliOf(npmCli),
      ['--no-install', 'dawatch', '--version'],
      {
        npm_config_script_shell: '/bin/sh',
      },
    );
    expect(stdout, stderr).toBe(`${pkg.version}\n`);
  });

  it('checks its settings and its ledger with doctor', async () => {
    const settings = {
      DAWATCH_SERVICE_KEY: API_KEY,
      DAWATCH_DATABASE: join(installed.folder, 'doctor.db'),
    };
    const { code, stdout } = await installed.run(COMMAND, ['doctor'], settings);
    expect(code).toBe(2);
    expect(stdout).toContain('no upstream is configured');
  });

  it('tracks a submission until it is finalized, with a worker behind Redis and the dashboard', async () => {
    const redis = await startRedis();
    try {
      const [, upstream] = await installed.start(
        COMMAND,
        ['sandbox', '--port', '0', '--speed', '40'],
        {},
        /(http:\S+),/,
      );
      const settings = {
        DAWATCH_UPSTREAM_URL: String(upstream),
        DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
        DAWATCH_SERVICE_KEY: API_KEY,
        DAWATCH_REDIS_URL: redis.url,
        DAWATCH_DATABASE: join(installed.folder, 'ledger.db'),
        DAWATCH_PORT: '0',
      };
      const [, url] = await installed.start(COMMAND, ['serve'], settings, /"url":"(http:[^"]+)"/);
      await installed.start(COMMAND, ['worker'], settings, /worker\.started/);
      const submitted = await fetch(`${upstream}/v1/submit_data`, {
        method: 'POST',
        headers: { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' },
        body: JSON.stringify({ data: 'YQ==' }),
      });
      const { submission_id: id } = (await submitted.json()) as { submission_id: string };
      const caller = { DAWATCH_URL: String(url), DAWATCH_API_KEY: API_KEY };
      const { code, stdout, stderr } = await installed.run(
        COMMAND,
        ['track', id, '--wait'],
        caller,
      );
      expect(code, stderr).toBe(0);
      expect(stdout).toMatch(/^finalized +\S+/m);
      for (const path of [
        '/',
        '/assets/main.js',
        '/assets/lib/preact.js',
        '/docs/',
        '/openapi.json',
      ])
        expect((await fetch(`${url}${path}`)).status, path).toBe(200);
    } finally {
      await redis.close();
    }
  });

  it('signs in at a provider, and sends mail', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const provider = await openOidcProvider({ redirectUri: `${url}/v1/session/oidc/callback` });
    const smtp = await openSmtpReceiver();
    const config = join(installed.folder, 'dawatch.yaml');
    const settings = {
      server: { port: Number(new URL(url).port), public_url: url },
      auth: { admin_token: API_KEY },
      database: join(installed.folder, 'signs-in.db'),
      upstreams: { default: { url: 'http://127.0.0.1:9', api_key: 'key-1' } },
      oidc: {
        issuer: provider.url,
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        roles: { operator: ['watchers'] },
      },
      channels: {
        mail: { type: 'email', smtp_url: smtp.url, from: 'a@b.example', to: ['c@d.example'] },
      },
    };
    writeFileSync(config, JSON.stringify(settings), { mode: 0o600 });
    await installed.start(COMMAND, ['serve', '--config', config], {}, /"server\.started"/);
    const signIn = await fetch(`${url}/v1/session/oidc`, { redirect: 'manual' });
    expect(signIn.headers.get('location')).toContain(`${provider.url}/auth?`);
    const headers = { 'x-api-key': API_KEY };
    const sent = await fetch(`${url}/v1/channels/mail/test`, { method: 'POST', headers });
    expect(sent.status, await sent.text()).toBe(202);
    await eventually(() => expect(smtp.mails).toHaveLength(1));
  });

  it('can load every file, also those for features that few servers use', async () => {
    const at = join(installed.folder, 'node_modules/dawatch');
    const files = globSync('*.js', { cwd: at }).filter((name) => name !== 'main.js');
    const imports = files.map((name) => `await import('./node_modules/dawatch/${name}');`);
    writeFileSync(join(installed.folder, 'load.mjs'), imports.join('\n'));
    expect(await installed.run('load.mjs', [])).toEqual({ code: 0, stdout: '', stderr: '' });
  });

  it('is three packages on at most 60 MB of the disk', () => {
    const modules = join(installed.folder, 'node_modules');
    const packages = readdirSync(modules).filter((name) => !name.startsWith('.'));
    expect(packages).toEqual(['better-sqlite3', 'dawatch', 'node-addon-api']);
    const used = execFileSync('du', ['-sm', modules], { encoding: 'utf8' });
    expect(Number.parseInt(used, 10)).toBeLessThanOrEqual(60);
  });
});

it('names the versions of Node that it needs on any other', () => {
  const main = join(folder, COMMAND);
  expect(existsSync(main)).toBe(true);
  const { status, stderr } = spawnSync(
    join(nodes[CLIENT_NODE] as string, 'node'),
    [main, 'serve'],
    {
      encoding: 'utf8',
      env: {},
    },
  );
  expect([status, stderr]).toEqual([
    1,
    expect.stringMatching(/^dawatch needs Node 22\.19 or newer, this is 20\.\d+\.\d+\n$/),
  ]);
});

it.each([
  ['the server', tarball, 'node16'],
  ['the client', inject('packages').client, 'node16'],
  ['the pacing', inject('packages').pacing, 'esm-only'],
])('publint and arethetypeswrong find nothing in %s', (_name, packed, profile) => {
  const tool = (name: string, ...args: string[]) =>
    execFileSync(join(ROOT, 'node_modules/.bin', name), args, { encoding: 'utf8' });
  expect(tool('publint', '--strict', packed)).toContain('All good!');
  // It exits with 1 if it finds a problem. node10, which the profiles ignore: TypeScript's
  // resolution before package.json had exports.
  tool('attw', packed, '--profile', profile);
});

it('contains the compiled program, its settings and its documents, and nothing else', () => {
  const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
  const known =
    /^package\/(?:[\w-]+\.js|page\/.*\.(?:js|css|html)|(?:config|deploy\/host)\/.*|package\.json|README\.md|LICENSE|THIRD-PARTY-LICENSES)$/;
  expect(files.filter((file) => !known.test(file))).toEqual([]);
  expect(files).toContain('package/program.js');
});

it('has the license of each library in it', () => {
  const licenses = execFileSync('tar', ['-xzOf', tarball, 'package/THIRD-PARTY-LICENSES'], {
    encoding: 'utf8',
  });
  for (const name of ['fastify', 'zod', 'bullmq', 'openid-client', 'preact', 'swagger-ui'])
    expect(licenses).toMatch(new RegExp(`^${name} \\S+: (?:MIT|Apache-2\\.0)$`, 'm'));
});
