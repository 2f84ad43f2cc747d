import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { disconnect, openRedis, type RedisSettings } from '../../src/redis/connections.ts';
import { openEngine, openWorker } from '../support/redis/bullmq-rig.ts';
import { createAuthority, tlsOptions } from '../support/redis/certificates.ts';
import { isRedisMissing, redisForTest } from '../support/redis/redis-server.ts';
import { freePort } from '../support/servers/free-port.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A Redis that accepts only clients with a certificate of a private authority. */
async function tlsRedis() {
  const authority = createAuthority();
  const port = await freePort();
  const server = authority.issue('redis');
  await redisForTest({ settings: tlsOptions(port, authority.ca, server) });
  const client = authority.issue('client');
  return {
    client,
    address: {
      url: `rediss://127.0.0.1:${port}`,
      tls_ca_file: authority.ca,
      tls_cert_file: client.cert,
      tls_key_file: client.key,
    },
  };
}

/** Resolves with `ready`, or with the message of the first error. */
async function connected(address: Omit<RedisSettings, 'prefix'>): Promise<string> {
  const redis = openRedis({ ...address, prefix: 'bull' });
  const first = new Promise<string>((resolve) => {
    redis.once('ready', () => resolve('ready'));
    redis.once('error', (error) => resolve(error.message));
  });
  return first.finally(() => disconnect(redis));
}

describe.skipIf(isRedisMissing())(
  'a Redis with a private authority and client certificates',
  () => {
    test('carries polls to workers and their results', async () => {
      const { address } = await tlsRedis();
      const server = openEngine(address);
      const worker = openWorker(address);
      await server.sees(1);
      const reported: string[] = [];
      await server.engine.poll(
        { upstream: 'default', submissionIds: ['a', 'b'] },
        ({ submissionId }) => reported.push(submissionId),
      );
      expect(reported.sort()).toEqual(['a', 'b']);
      expect(worker.polled.sort()).toEqual(['a', 'b']);
    });

    test('is refused without its authority, and refuses clients without a certificate of it', async () => {
      const { address, client } = await tlsRedis();
      const other = createAuthority('other');
      const foreign = other.issue('client');
      const { url, tls_ca_file } = address;
      expect(await connected(address)).toBe('ready');
      expect(
        await connected({ url, tls_cert_file: client.cert, tls_key_file: client.key }),
      ).toMatch(/certificate/);
      expect(await connected({ ...address, tls_ca_file: other.ca })).toMatch(/certificate/);
      expect(await connected({ url, tls_ca_file })).not.toBe('ready');
      expect(
        await connected({
          url,
          tls_ca_file,
          tls_cert_file: foreign.cert,
          tls_key_file: foreign.key,
        }),
      ).not.toBe('ready');
    });
  },
);

describe('the files of TLS', () => {
  const open = (files: Partial<RedisSettings>) => () =>
    disconnect(openRedis({ url: 'rediss://127.0.0.1:1', prefix: 'bull', ...files }));

  test.each(['tls_ca_file', 'tls_cert_file', 'tls_key_file'] as const)(
    'a missing %s, and one that is not PEM, is a problem that names the setting and shows no content',
    (name) => {
      const { ca, issue } = createAuthority();
      const { cert, key } = issue('client');
      const files = { tls_ca_file: ca, tls_cert_file: cert, tls_key_file: key };
      const odd = join(tempFolder(), 'odd.pem');
      writeFileSync(odd, 'a-secret-by-mistake');
      const unusable = `redis.${name} names a file that is no usable PEM file`;
      expect(open({ ...files, [name]: '/nowhere/file' })).toThrow(`${unusable} (ENOENT)`);
      expect(open({ ...files, [name]: odd })).toThrow(unusable);
      expect(open({ ...files, [name]: odd })).not.toThrow('a-secret-by-mistake');
    },
  );

  test('the key of another certificate is a problem', () => {
    const { ca, issue } = createAuthority();
    const [{ cert }, other] = [issue('client'), issue('other')];
    expect(open({ tls_ca_file: ca, tls_cert_file: cert, tls_key_file: other.key })).toThrow(
      'redis.tls_key_file is not the key of the certificate in redis.tls_cert_file',
    );
  });
});
