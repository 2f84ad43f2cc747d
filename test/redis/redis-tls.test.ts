import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { disconnect, openRedis, problemOfTls, type RedisAddress } from '../../src/redis/redis.ts';
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
  const redis = await redisForTest({ settings: tlsOptions(port, authority.ca, server) });
  const client = authority.issue('client');
  return {
    ...{ redis, client },
    address: {
      url: `rediss://127.0.0.1:${port}`,
      tls_ca_file: authority.ca,
      tls_cert_file: client.cert,
      tls_key_file: client.key,
    },
  };
}

/** Resolves with `ready`, or with the message of the first error. */
async function connected(address: RedisAddress): Promise<string> {
  const redis = openRedis(address);
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

    test('is reconnected with the current certificates, once all of them are replaced', async () => {
      const { address, redis, client } = await tlsRedis();
      const server = openEngine(address);
      await server.isUp();
      const next = createAuthority('next');
      const admin = openRedis({ url: redis.url });
      await expect.poll(() => admin.status).toBe('ready');
      const { cert, key } = next.issue('redis');
      // A certificate must match the authority while clients need one.
      await admin.config('SET', 'tls-auth-clients', 'no');
      await admin.config(
        'SET',
        'tls-ca-cert-file',
        next.ca,
        'tls-cert-file',
        cert,
        'tls-key-file',
        key,
      );
      await admin.config('SET', 'tls-auth-clients', 'yes');
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      await server.isDisconnected();
      // A reconnection between the following three steps finds files that do not match.
      writeFileSync(client.cert, 'incomplete');
      next.issue('client', client);
      execFileSync('cp', [next.ca, address.tls_ca_file]);
      await server.isUp();
      disconnect(admin);
    });

    test('restarts while a file is unusable: the previous ones carry polls to workers', async () => {
      const { address, redis, client } = await tlsRedis();
      const server = openEngine(address);
      const worker = openWorker(address);
      await server.sees(1);
      const before = server.link.usable?.fencingToken;
      writeFileSync(client.key, 'incomplete');
      await redis.restart();
      await vi.waitUntil(
        () => server.link.usable && server.link.usable.fencingToken !== before,
        15_000,
      );
      await server.sees(1);
      await server.engine.poll({ upstream: 'default', submissionIds: ['a'] }, () => undefined);
      expect(worker.polled).toEqual(['a']);
    });
  },
);

describe('the files of TLS', () => {
  const authority = () => createAuthority();

  test('that fit together are no problem', () => {
    const { ca, issue } = authority();
    const { cert, key } = issue('client');
    expect(
      problemOfTls({ tls_ca_file: ca, tls_cert_file: cert, tls_key_file: key }),
    ).toBeUndefined();
    expect(problemOfTls({})).toBeUndefined();
  });

  test.each(['tls_ca_file', 'tls_cert_file', 'tls_key_file'] as const)(
    'a missing %s, and one that is not PEM, is a problem that names the setting and shows no content',
    (name) => {
      const { ca, issue } = authority();
      const { cert, key } = issue('client');
      const files = { tls_ca_file: ca, tls_cert_file: cert, tls_key_file: key };
      const odd = join(tempFolder(), 'odd.pem');
      writeFileSync(odd, 'a-secret-by-mistake');
      const unusable = `redis.${name} names a file that is no usable PEM file`;
      expect(problemOfTls({ ...files, [name]: '/nowhere/file' })).toBe(`${unusable} (ENOENT)`);
      const problem = problemOfTls({ ...files, [name]: odd });
      expect(problem).toMatch(unusable);
      expect(problem).not.toContain('a-secret-by-mistake');
    },
  );

  test('the key of another certificate is a problem', () => {
    const { ca, issue } = authority();
    const [{ cert }, other] = [issue('client'), issue('other')];
    expect(problemOfTls({ tls_ca_file: ca, tls_cert_file: cert, tls_key_file: other.key })).toBe(
      'redis.tls_key_file is not the key of the certificate in redis.tls_cert_file',
    );
  });
});
