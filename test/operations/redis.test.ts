import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/operations/config/load.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { tempFolder } from '../support/temp-folder.ts';

function load(redis: Record<string, unknown>) {
  const file = join(tempFolder(), 'settings.yaml');
  writeFileSync(file, JSON.stringify({ redis }));
  return loadConfig({ env: {}, file }).config.redis;
}

/** Returns the problems without the name of the file. */
function problems(redis: Record<string, unknown>): string[] {
  try {
    load(redis);
    return [];
  } catch (error) {
    if (error instanceof ConfigError)
      return error.problems.map((problem) => problem.replace(/ \([^)]*\)$/, ''));
    throw error;
  }
}

const SENTINELS = ['s1.internal:26379', 's2.internal', '[fd00::1]:26380'];
const TLS = {
  tls_ca_file: '/tls/ca.pem',
  tls_cert_file: '/tls/client.pem',
  tls_key_file: '/tls/client.key',
};

describe('the settings of Redis', () => {
  it.each([
    ['one Redis', { url: 'redis://user:password@redis:6379/2' }],
    ['TLS with the authorities that Node trusts', { url: 'rediss://redis:6380' }],
    ['TLS with a private authority', { url: 'rediss://redis:6380', tls_ca_file: TLS.tls_ca_file }],
    ['TLS with a client certificate', { url: 'rediss://redis:6380', ...TLS }],
    ['Sentinels', { url: 'redis://:password@mymaster', sentinels: SENTINELS }],
    [
      'Sentinels with a user, and TLS',
      {
        url: 'rediss://mymaster',
        sentinels: SENTINELS,
        sentinel_user: 'a',
        sentinel_password: 'b',
        ...TLS,
      },
    ],
  ])('allow %s', (_name, redis) => {
    expect(load(redis)).toMatchObject(redis);
  });

  it.each([
    [
      { url: 'redis://redis', ...TLS },
      'redis.tls_ca_file: requires redis.url to begin with rediss://',
    ],
    [{ ...TLS }, 'redis.tls_ca_file: requires redis.url to begin with rediss://'],
    [
      { url: 'rediss://redis', tls_cert_file: '/c' },
      'redis.tls_cert_file: requires redis.tls_key_file',
    ],
    [
      { url: 'rediss://redis', tls_key_file: '/k' },
      'redis.tls_key_file: requires redis.tls_cert_file',
    ],
    [{ sentinels: SENTINELS }, 'redis.sentinels: requires redis.url with the name of the primary'],
    [
      { url: 'redis://mymaster:6379', sentinels: SENTINELS },
      'redis.url must be the name of the primary without a port, such as redis://mymaster, because redis.sentinels is set',
    ],
    [
      { url: 'redis://redis', sentinel_password: 'b' },
      'redis.sentinel_password: requires redis.sentinels',
    ],
    [
      { url: 'redis://mymaster', sentinels: SENTINELS, sentinel_user: 'a' },
      'redis.sentinel_user: requires redis.sentinel_password',
    ],
    [
      { url: 'redis://mymaster', sentinels: ['redis://:secret@s1:26379'] },
      'redis.sentinels.0 must be host:port, without a protocol and a password',
    ],
  ])('refuse %j with one sentence', (redis, problem) => {
    expect(problems(redis)[0]).toBe(problem);
    expect(problems(redis).join()).not.toContain('secret');
  });
});
