import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/wiring/settings.ts';
import { readCompose, type Service } from '../packages/support/compose.ts';
import { isRedisMissing } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Without variables, as in a trial with the sandbox. */
const compose = readCompose({});
const services = Object.entries(compose.services);
const service = (name: string, { services } = compose): Service =>
  services[name] ?? expect.unreachable(`there is no ${name}`);
/** The script of a service whose command is `sh -c <script>`. */
const scriptOf = (name: string): string => service(name).command?.[2] ?? '';

describe('docker-compose.yml', () => {
  it('limits CPU, memory and processes of every service', () => {
    for (const [name, { deploy }] of services)
      expect(deploy.resources.limits, name).toEqual({
        cpus: expect.stringMatching(/^\d+$/),
        memory: expect.stringMatching(/^\d+[MG]$/),
        pids: expect.any(Number),
      });
  });

  it('makes Redis refuse writes before its container runs out of memory, with space for the copy of a rewrite', () => {
    const maxmemory = Number.parseInt(/--maxmemory (\d+)mb/.exec(scriptOf('redis'))?.[1] ?? '', 10);
    const limit = Number.parseInt(service('redis').deploy.resources.limits.memory, 10);
    expect(maxmemory).toBeGreaterThan(0);
    expect(limit).toBeGreaterThanOrEqual(2 * maxmemory);
  });

  it('puts Redis in an internal network that only the server and the workers share', () => {
    expect(service('redis').networks).toEqual(['queue']);
    expect(compose.networks.queue).toEqual({ internal: true });
    const inside = services
      .filter(([, { networks }]) => networks.includes('queue'))
      .map(([name]) => name);
    expect(inside).toEqual(['redis', 'server', 'worker']);
    for (const [name, { networks }] of services)
      for (const network of networks) expect(compose.networks, name).toHaveProperty(network);
  });

  it('publishes the ports of the server and the sandbox on the local machine only', () => {
    expect(
      Object.fromEntries(services.flatMap(([name, { ports }]) => (ports ? [[name, ports]] : []))),
    ).toEqual({
      server: ['127.0.0.1:8080:8080'],
      sandbox: ['127.0.0.1:8790:8790'],
    });
    const others = readCompose({ PUBLISHED_PORT: '80', SANDBOX_PORT: '81' });
    expect([service('server', others).ports, service('sandbox', others).ports].flat()).toEqual([
      '127.0.0.1:80:8080',
      '127.0.0.1:81:8790',
    ]);
  });

  it('lets the server write temporary files of a migration to the volume of the ledger, as its container is read-only', () => {
    const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
    const folder = /^ENV SQLITE_TMPDIR=(\S+)$/m.exec(dockerfile)?.[1];
    const mounts = (service('server').volumes ?? []).map((mount) => mount.split(':')[1]);
    expect(mounts).toContain(folder);
  });

  it('gives the server and the workers the same settings file', () => {
    const mount = './config/docker.yaml:/app/config/docker.yaml:ro';
    for (const name of ['server', 'worker']) expect(service(name).volumes).toContain(mount);
  });

  it('runs dawatch without privileges on a read-only file system', () => {
    for (const [name, { read_only, cap_drop }] of services)
      if (name !== 'redis')
        expect({ read_only, cap_drop }, name).toEqual({ read_only: true, cap_drop: ['ALL'] });
  });

  it('starts the server with the options of the image', () => {
    const command = /^CMD (\[.*\])$/m.exec(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))?.[1];
    expect(scriptOf('server')).toContain(`exec ${JSON.parse(command ?? '[]').join(' ')}\n`);
  });

  it('checks the health of the server with the settings that it has', () => {
    const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
    expect(dockerfile).toMatch(/^HEALTHCHECK .*\n +CMD \["dawatch", "doctor", "--ready"\]$/m);
    expect(service('server').healthcheck).toBeUndefined();
  });

  it('lets the server listen where its published port leads, whatever the settings file says', () => {
    const file = join(tempFolder(), 'dawatch.yaml');
    writeFileSync(file, 'server: { port: 9000 }');
    const { DAWATCH_HOST, DAWATCH_PORT } = service('server').environment ?? {};
    const { config } = loadConfig({ env: { DAWATCH_HOST, DAWATCH_PORT }, file });
    expect(config.server).toMatchObject({ host: '0.0.0.0', port: 8080 });
  });

  it.each<[string, Record<string, string>, object]>([
    ['the sandbox without variables', {}, { url: 'http://sandbox:8790', api_key: 'sandbox-key' }],
    [
      'the upstream that the variables name',
      { DAWATCH_UPSTREAM_URL: 'https://upstream.example', DAWATCH_UPSTREAM_API_KEY: 'my-key' },
      { url: 'https://upstream.example', api_key: 'my-key' },
    ],
  ])('passes the server and the workers %s', (_name, variables, upstream) => {
    const folder = tempFolder();
    for (const [name, { environment = {}, volumes = [] }] of Object.entries(
      readCompose(variables).services,
    )) {
      if (name !== 'server' && name !== 'worker') continue;
      // The secret files are on volumes of the service.
      const env = Object.entries(environment).map(([key, value]) => {
        if (!key.endsWith('_FILE')) return [key, value];
        expect(volumes.some((volume) => value.startsWith(`${volume.split(':')[1]}/`))).toBe(true);
        const file = join(folder, key);
        writeFileSync(
          file,
          key === 'DAWATCH_REDIS_URL_FILE' ? 'redis://:a@redis:6379\n' : `${'0'.repeat(64)}\n`,
        );
        return [key, file];
      });
      const { config } = loadConfig({
        env: Object.fromEntries(env),
        file: join(ROOT, 'config/docker.yaml'),
      });
      expect(config.redis.url).toBe('redis://:a@redis:6379');
      expect(config.upstreams.default).toMatchObject(upstream);
      expect(config.server.host).toBe('0.0.0.0');
    }
  });

  it.each([
    ['creates a service key at the first start and keeps it', '', /^[0-9a-f]{64}\n$/],
    ['takes the service key of the variable', 'a-key-that-i-chose', /^a-key-that-i-chose\n$/],
  ])('%s', (_name, key, expected) => {
    const data = tempFolder();
    const script = scriptOf('server')
      .replaceAll('/data/', `${data}/`)
      .replace(/^exec .*$/m, '');
    const { environment = {} } = service(
      'server',
      readCompose(key === '' ? {} : { DAWATCH_SERVICE_KEY: key }),
    );
    const run = () => {
      const env = { PATH: process.env.PATH, SERVICE_KEY: environment.SERVICE_KEY };
      expect(spawnSync('sh', ['-c', script], { env }).status).toBe(0);
      expect(statSync(join(data, 'api-key')).mode & 0o777).toBe(0o600);
      return readFileSync(join(data, 'api-key'), 'utf8');
    };
    const first = run();
    expect(first).toMatch(expected);
    expect(run()).toBe(first);
  });
});

describe.skipIf(isRedisMissing())('the Redis of docker-compose.yml', () => {
  it('passes its health check only with the password that its first start created, and never evicts jobs', async () => {
    const folder = tempFolder();
    const socket = join(folder, 'redis.sock');
    const bin = join(folder, 'bin');
    mkdirSync(bin);
    // The entrypoint of the image becomes the user redis and runs the command. Here, it also sets a
    // place of the test.
    const entrypoint = `#!/bin/sh\nexec "$@" --port 0 --unixsocket ${socket} --dir ${folder}\n`;
    writeFileSync(join(bin, 'docker-entrypoint.sh'), entrypoint, { mode: 0o755 });
    const inFolder = (text: string) => text.replaceAll('/credentials', folder);
    const PATH = `${bin}:${process.env.PATH}`;
    async function start(): Promise<string> {
      const redis = spawn('sh', ['-c', inFolder(scriptOf('redis'))], {
        stdio: 'ignore',
        env: { PATH },
      });
      const gone = new Promise((resolve) => redis.once('close', resolve));
      const kill = async () => {
        redis.kill('SIGKILL');
        await gone;
      };
      onTestFinished(kill);
      const [kind, check = ''] = service('redis').healthcheck?.test ?? [];
      expect(kind).toBe('CMD-SHELL');
      const isHealthy = () =>
        spawnSync('sh', ['-c', inFolder(check).replace('redis-cli', `redis-cli -s ${socket}`)], {
          env: { PATH },
        }).status;
      await eventually(() => expect(isHealthy()).toBe(0));
      const ask = (auth: string | undefined, ...words: string[]) =>
        spawnSync('redis-cli', ['-e', '-s', socket, ...words], {
          encoding: 'utf8',
          env: { PATH, ...(auth && { REDISCLI_AUTH: auth }) },
        });
      const url = readFileSync(join(folder, 'url'), 'utf8').trim();
      const password = /^redis:\/\/:([0-9a-f]{64})@redis:6379$/.exec(url)?.[1];
      expect(ask(password, 'ping').stdout).toBe('PONG\n');
      expect(ask(undefined, 'ping').status).not.toBe(0);
      expect(ask('wrong', 'ping').status).not.toBe(0);
      expect(ask(password, 'config', 'get', 'maxmemory-policy').stdout).toContain('noeviction');
      expect(ask(password, 'config', 'get', 'appendonly').stdout).toContain('yes');
      await kill();
      return url;
    }
    const first = await start();
    expect(await start(), 'the password stays').toBe(first);
    // The server and the workers run as another user and read the URL only.
    expect(statSync(join(folder, 'url')).mode & 0o777).toBe(0o644);
    expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600);
  });
});
