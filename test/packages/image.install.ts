import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import pkg from '../../package.json' with { type: 'json' };
import { freePort } from '../support/servers/free-port.ts';
import { eventually } from '../support/until.ts';
import { readCompose, runArgs, type Service } from './support/compose.ts';
import { type Containers, openContainers, SKIPPED } from './support/containers.ts';
import { removedAfterTests } from './support/folders.ts';
import { installEnv } from './support/pack.ts';

const ROOT = join(import.meta.dirname, '../..');
const IMAGE = 'localhost/dawatch';
const BASE = 'docker.io/library/node:24-bookworm-slim';
/** Of the layers that the Dockerfile adds to its base image. */
const MAX_BYTES = 60_000_000;

const packages = inject('packages');

describe.skipIf(SKIPPED)('the image', () => {
  let containers: Containers;
  beforeAll(async () => {
    containers = await openContainers(packages);
    await containers.build(IMAGE);
  }, 1_800_000);
  afterAll(() => containers?.close(), 120_000);

  /** Runs a command in a container without a network, a writable file system and capabilities. */
  const run = (...command: string[]) =>
    containers.succeed(
      'run',
      '--rm',
      '--network',
      'none',
      '--read-only',
      '--cap-drop',
      'ALL',
      IMAGE,
      ...command,
    );

  it('contains the files of the npm package and nothing of the development', async () => {
    const files = (
      await run('find', '.', '-path', './node_modules', '-prune', '-o', '-type', 'f', '-print')
    ).split('\n');
    const packed = execFileSync('tar', ['-tzf', packages.server], { encoding: 'utf8' })
      .trim()
      .split('\n');
    expect(files.toSorted()).toEqual(
      [
        ...packed.map((file) => file.replace('package/', './')),
        './package-lock.json',
        './.npmrc',
      ].toSorted(),
    );
    const modules = (await run('ls', 'node_modules')).split('\n');
    expect(modules).toEqual(['better-sqlite3', 'node-addon-api']);
  });

  it('runs as a user that can write only to the volume of the ledger', async () => {
    expect(await run('id', '--user', '--name')).toBe('node');
    expect(await run('find', '/app', '/usr', '-writable', '-not', '-type', 'l')).toBe('');
    expect(await run('sh', '-c', 'touch /data/a && ls /data')).toBe('a');
  });

  it('adds less than 60 MB to its base image', async () => {
    const sizeOf = async (image: string) =>
      Number(await containers.succeed('image', 'inspect', '--format', '{{.Size}}', image));
    const bytes = (await sizeOf(IMAGE)) - (await sizeOf(BASE));
    console.info(`the image adds ${Math.round(bytes / 1e6)} MB to its base image`);
    expect(bytes).toBeLessThan(MAX_BYTES);
  });

  it('runs the command', async () => {
    expect(await run('dawatch', '--version')).toBe(pkg.version);
  });

  describe('with docker-compose.yml and the profile sandbox', () => {
    const ports = { PUBLISHED_PORT: '', SANDBOX_PORT: '' };
    const start = async (name: string) => {
      const service = readCompose(ports).services[name] as Service;
      // The sandbox needs a minute otherwise.
      if (name === 'sandbox') service.command?.push('--speed', '20');
      await containers.succeed(...runArgs('test', name, service, IMAGE));
    };
    const isHealthy = (name: string) =>
      eventually(async () =>
        expect((await containers.podman('healthcheck', 'run', `test-${name}`)).code).toBe(0),
      );
    const inside = (name: string, ...command: string[]) =>
      containers.podman('exec', `test-${name}`, ...command);

    beforeAll(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[])
        ports[name] = String(await freePort());
      const { services, networks } = readCompose(ports);
      for (const [name, network] of Object.entries(networks))
        await containers.succeed(
          'network',
          'create',
          ...(network?.internal ? ['--internal'] : []),
          `test-${name}`,
        );
      // The order of depends_on.
      expect(services.server?.depends_on).toEqual({ redis: { condition: 'service_healthy' } });
      expect(services.worker?.depends_on).toEqual({ redis: { condition: 'service_healthy' } });
      await start('redis');
      await isHealthy('redis');
      for (const name of ['sandbox', 'server', 'worker']) await start(name);
    });

    it('needs no variable, and every service becomes healthy', async () => {
      for (const name of ['sandbox', 'server', 'worker']) await isHealthy(name);
    });

    it('tracks a submission of the sandbox until it is final', async () => {
      const response = await fetch(`http://127.0.0.1:${ports.SANDBOX_PORT}/v1/submit_data`, {
        method: 'POST',
        headers: { 'x-api-key': 'sandbox-key', 'content-type': 'application/json' },
        body: JSON.stringify({ data: 'YQ==' }),
      });
      const { submission_id: id } = (await response.json()) as { submission_id: string };
      const { stdout, stderr } = await inside('server', 'dawatch', 'track', id, '--wait');
      expect(stdout, stderr).toMatch(/^finalized +\S+/m);
    });

    it('shows clients of the machine the server, with the key that the first start created', async () => {
      const key = (await inside('server', 'cat', '/data/api-key')).stdout.trim();
      expect(key).toMatch(/^[0-9a-f]{64}$/);
      const status = async (headers: Record<string, string>) =>
        (await fetch(`http://127.0.0.1:${ports.PUBLISHED_PORT}/v1/overview`, { headers })).status;
      expect([await status({}), await status({ 'x-api-key': key })]).toEqual([401, 200]);
    });

    it('has settings without a finding of the doctor', async () => {
      const { code, stdout } = await inside('server', 'dawatch', 'doctor');
      expect([code, stdout.match(/^(?:warning|problem).*/gm)], stdout).toEqual([0, null]);
    });

    it('sends the polls through the worker, and lets only the server and the workers reach Redis', async () => {
      expect(await containers.succeed('logs', 'test-server')).toContain('"event":"worker.joined"');
      const reach =
        "require('net').connect(6379, 'redis').on('connect', () => process.exit(0)).on('error', () => process.exit(1))";
      expect((await inside('worker', 'node', '-e', reach)).code).toBe(0);
      expect((await inside('sandbox', 'node', '-e', reach)).code).toBe(1);
    });

    it('ends at once when it is stopped, and keeps its key and its submissions', async () => {
      const key = await inside('server', 'cat', '/data/api-key');
      await containers.succeed('stop', 'test-server');
      expect(
        await containers.succeed('inspect', '--format', '{{.State.ExitCode}}', 'test-server'),
      ).toBe('0');
      await containers.succeed('rm', 'test-server');
      await start('server');
      await isHealthy('server');
      expect(await inside('server', 'cat', '/data/api-key')).toEqual(key);
      expect((await inside('server', 'dawatch', 'list')).stdout).toContain('finalized');
    });
  });
});

describe('the image for arm64', () => {
  const folder = removedAfterTests();

  it('has the native modules of its platform', () => {
    execFileSync('tar', ['-xzf', packages.server, '-C', folder, '--strip-components=1']);
    for (const file of ['package-lock.json', '.npmrc'])
      copyFileSync(join(ROOT, file), join(folder, file));
    // As in the Dockerfile.
    const npm = (...args: string[]) =>
      execFileSync(process.execPath, [packages.npmCli, ...args], {
        cwd: folder,
        env: installEnv(),
        stdio: 'pipe',
      });
    npm('install', '--package-lock-only');
    npm('ci', '--os', 'linux', '--cpu', 'arm64', '--libc', 'glibc');
    const isArm = (file: string) => readFileSync(file).readUInt16LE(18) === ELF_AARCH64;
    const native = globSync('node_modules/**/*.node', { cwd: folder }).map((file) =>
      join(folder, file),
    );
    const ofPlatform = native.filter((file) => /linux-arm64/.test(file));
    expect(ofPlatform.map((file) => basename(file))).toContain('linux-arm64.node');
    for (const file of ofPlatform) expect(isArm(file), file).toBe(true);
    // Nothing is native for another architecture only.
    const others = native.filter((file) => /linux-x64/.test(file));
    for (const file of others)
      expect(ofPlatform).toContain(file.replaceAll('linux-x64', 'linux-arm64'));
  });
});

const ELF_AARCH64 = 183;
