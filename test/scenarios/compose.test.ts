import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';
import { isRedisMissing } from '../support/redis/redis-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

type Service = {
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  networks: string[];
  deploy: { resources: { limits: Record<string, string | number> } };
  healthcheck?: { test: string[] };
  read_only?: boolean;
  cap_drop?: string[];
};
type Compose = { services: Record<string, Service>; networks: Record<string, { internal?: boolean } | null> };

const ROOT = join(import.meta.dirname, '../..');
const TEXT = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8');
const compose: Compose = parse(TEXT, { merge: true });
const services = Object.entries(compose.services);
const service = (name: string): Service => compose.services[name] ?? expect.unreachable(`there is no ${name}`);

const VARIABLES: Record<string, string> = {
  REDIS_PASSWORD: 'a1b2c3d4e5f6',
  DAWATCH_UPSTREAM_URL: 'http://sandbox:8790',
  DAWATCH_UPSTREAM_API_KEY: 'sandbox-key',
  DAWATCH_API_KEY: 'a-service-key-for-clients',
};

/** Substitutes variables like `docker compose`. */
function filledIn(text: string): string {
  return text.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_whole, name: string, kind?: string, other = '') => {
    const value = VARIABLES[name];
    if (value) return value;
    if (kind === '-') return other;
    throw new Error(`${name} is not set: ${other}`);
  });
}

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
    const command = service('redis').command ?? [];
    const maxmemory = Number.parseInt(command[command.indexOf('--maxmemory') + 1] ?? '', 10);
    const limit = Number.parseInt(String(service('redis').deploy.resources.limits.memory), 10);
    expect(maxmemory).toBeGreaterThan(0);
    expect(limit).toBeGreaterThanOrEqual(2 * maxmemory);
  });

  it('puts Redis in an internal network that only the server and the workers share', () => {
    expect(service('redis').networks).toEqual(['queue']);
    expect(compose.networks.queue).toEqual({ internal: true });
    const inside = services.filter(([, { networks }]) => networks.includes('queue')).map(([name]) => name);
    expect(inside).toEqual(['redis', 'server', 'worker']);
    for (const [name, { networks }] of services)
      for (const network of networks) expect(compose.networks, name).toHaveProperty(network);
  });

  it('publishes only the port of the server, on the local machine', () => {
    expect(services.filter(([, { ports }]) => ports).map(([name]) => name)).toEqual(['server']);
    expect(service('server').ports?.map(filledIn)).toEqual(['127.0.0.1:8080:8080']);
  });

  it('gives the server and the workers the same settings file', () => {
    const [mount = ''] = service('worker').volumes ?? [];
    expect(filledIn(mount)).toBe('./config/docker.yaml:/app/config/docker.yaml:ro');
    expect(service('server').volumes).toContain(mount);
  });

  it('runs dawatch without privileges on a read-only file system', () => {
    for (const [name, { read_only, cap_drop }] of services)
      if (name !== 'redis') expect({ read_only, cap_drop }, name).toEqual({ read_only: true, cap_drop: ['ALL'] });
  });

  it('requires only variables that its head comment and the README list', () => {
    expect(() => filledIn(TEXT)).not.toThrow();
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const head = TEXT.slice(0, TEXT.indexOf('x-dawatch'));
    for (const name of Object.keys(VARIABLES)) {
      expect(head).toContain(`${name}=`);
      expect(readme).toContain(name);
    }
  });

  it.each(['server', 'worker'])('passes valid settings to the %s', (name) => {
    const given = Object.entries(service(name).environment ?? {}).map(([key, value]) => [key, filledIn(value)]);
    const { config } = loadConfig({ env: Object.fromEntries(given), file: join(ROOT, 'config/docker.yaml') });
    expect(config.redis.url).toBe('redis://:a1b2c3d4e5f6@redis:6379');
    expect(config.upstreams.default.url).toBe('http://sandbox:8790');
    expect(config.server.host).toBe('0.0.0.0');
  });
});

describe.skipIf(isRedisMissing())('the Redis of docker-compose.yml', () => {
  it('passes its health check only with its password, and never evicts jobs', async () => {
    const { command = [], healthcheck, environment = {} } = service('redis');
    const [program = '', ...args] = command.map(filledIn);
    const folder = tempFolder();
    const socket = join(folder, 'redis.sock');
    const own = ['--port', '0', '--unixsocket', socket, '--dir', folder];
    const redis = spawn(program, [...args, ...own], { stdio: 'ignore' });
    const gone = new Promise((resolve) => redis.once('close', resolve));
    onTestFinished(async () => {
      redis.kill('SIGKILL');
      await gone;
    });
    const [kind, client = '', ...check] = healthcheck?.test ?? [];
    expect([kind, client]).toEqual(['CMD', 'redis-cli']);
    const runCheck = (auth: string | undefined, words = check) =>
      spawnSync(client, ['-s', socket, ...words], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH, ...(auth && { REDISCLI_AUTH: auth }) },
      });
    const password = filledIn(environment.REDISCLI_AUTH ?? '');
    await vi.waitFor(() => expect(runCheck(password).status).toBe(0), { timeout: 10_000, interval: 50 });
    expect(runCheck(undefined).status).not.toBe(0);
    expect(runCheck('wrong').status).not.toBe(0);
    expect(runCheck(password, ['config', 'get', 'maxmemory-policy']).stdout).toContain('noeviction');
    expect(runCheck(password, ['config', 'get', 'appendonly']).stdout).toContain('yes');
  });
});
