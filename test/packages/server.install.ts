import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { bytesBelow } from '../../bench/support/folder-size.ts';
import pkg from '../../package.json' with { type: 'json' };
import { startRedis } from '../support/redis/redis-server.ts';
import { removedAfterTests } from './support/folders.ts';
import { type Installed, installInto } from './support/installed.ts';
import { npxCliOf, SERVER_NODES } from './support/pack.ts';

const { server: tarball, npmCli, nodes, tooOldNode } = inject('packages');
const ROOT = join(import.meta.dirname, '../..');
const COMMAND = 'node_modules/dawatch/src/cli/main.js';
const API_KEY = 'a-service-key-for-tests-0123456789';
const MAX_BYTES = 80 * 2 ** 20;
const folder = removedAfterTests();

describe.each(SERVER_NODES)('the installed server on Node %s', (version) => {
  const nodePath = nodes[version] as string;
  let installed: Installed;
  beforeAll(() => {
    installed = installInto(join(folder, version), { tarball, npmCli, nodePath });
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
      DAWATCH_API_KEY: API_KEY,
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
        DAWATCH_API_KEY: API_KEY,
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

  it('is smaller than 80 MiB with its dependencies', () => {
    expect(bytesBelow(join(installed.folder, 'node_modules'))).toBeLessThan(MAX_BYTES);
  });
});

it('names the versions of Node that it needs on any other', () => {
  const [version] = SERVER_NODES;
  const main = join(folder, version, COMMAND);
  expect(existsSync(main)).toBe(true);
  const { status, stderr } = spawnSync(join(tooOldNode, 'node'), [main, 'serve'], {
    encoding: 'utf8',
    env: {},
  });
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
    /^package\/(?:dist\/.*\.(?:js|js\.map|css|html)|src\/cli\/main\.js|(?:config|deploy\/host)\/.*|package\.json|README\.md|LICENSE)$/;
  expect(files.filter((file) => !known.test(file))).toEqual([]);
  expect(files).toContain('package/dist/program.js');
});
