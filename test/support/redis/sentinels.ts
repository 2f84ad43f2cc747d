import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { onTestFinished, vi } from 'vitest';
import { freePort } from '../servers/free-port.ts';
import { openRedisClient } from './bullmq-rig.ts';
import { killed, type RedisServer, redisForTest, runRedis } from './redis-server.ts';

const NAME = 'mymaster';
/** A primary is replaced after this time without a response. */
const DOWN_AFTER_MS = 1_000;
const FAILOVER = { timeout: 30_000, interval: 100 };

type Passwords = { password?: string; sentinelPassword?: string };

/**
 * A primary, a replica and three Sentinels, each a process of its own, for the duration of a test.
 */
export async function sentinelsForTest({ password, sentinelPassword }: Passwords = {}) {
  const settings = {
    'repl-diskless-sync-delay': '0',
    'repl-ping-replica-period': '1',
    ...(password !== undefined && { masterauth: password }),
  };
  const open = () =>
    redisForTest({ keeps: true, settings, ...(password !== undefined && { password }) });
  const [primary, replica] = [await open(), await open()];
  const client = openRedisClient(replica);
  await client.replicaof('127.0.0.1', primary.port);
  await vi.waitUntil(
    async () => (await client.info('replication')).includes('master_link_status:up'),
    FAILOVER,
  );
  const lines = [
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 3000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${NAME} ${password}`]),
    ...(sentinelPassword === undefined
      ? []
      : [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]),
  ];
  const ports = await Promise.all([0, 1, 2].map(() => startSentinel(lines)));
  const clients = ports.map((port) => {
    const sentinel = new Redis({
      port,
      ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    });
    sentinel.on('error', () => undefined);
    onTestFinished(() => sentinel.disconnect());
    return sentinel;
  });
  const portOfPrimary = async (sentinel: Redis) =>
    Number(((await sentinel.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME)) as string[])[1]);
  const all = async (check: (sentinel: Redis) => Promise<boolean>) =>
    (await Promise.all(clients.map(check))).every(Boolean);
  // Only Sentinels that know each other and the replica can replace the primary.
  await vi.waitUntil(
    () =>
      all(async (sentinel) =>
        /status=ok.*slaves=1,sentinels=3/.test(await sentinel.info('sentinel')),
      ),
    FAILOVER,
  );
  return {
    address: {
      url: `redis://${password === undefined ? '' : `:${password}@`}${NAME}`,
      sentinels: ports.map((port) => `127.0.0.1:${port}`),
      ...(sentinelPassword !== undefined && { sentinel_password: sentinelPassword }),
    },
    async primary(): Promise<RedisServer> {
      const port = await portOfPrimary(clients[0] as Redis);
      return primary.port === port ? primary : replica;
    },
    /** Resolves when all Sentinels name another primary than `former`. */
    async replaced(former: RedisServer): Promise<void> {
      await vi.waitUntil(
        () => all(async (sentinel) => (await portOfPrimary(sentinel)) !== former.port),
        FAILOVER,
      );
    },
  };
}

/** Returns its port. A Sentinel writes to its settings file. */
async function startSentinel(lines: readonly string[]): Promise<number> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'dawatch-sentinel-'));
  const file = join(folder, 'sentinel.conf');
  writeFileSync(file, [`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, ...lines, ''].join('\n'));
  const process = await runRedis([file, '--sentinel'], port);
  onTestFinished(async () => {
    await killed(process);
    rmSync(folder, { recursive: true, force: true });
  });
  return port;
}
