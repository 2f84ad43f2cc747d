import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createSecureContext } from 'node:tls';
import { Redis, type RedisOptions } from 'ioredis';
import { readPem } from '../lib/bounded-file.ts';
import { StartError } from '../operations/config/start-error.ts';
import type { RedisConfig } from './settings.ts';

/** With `sentinels`, the host of `url` is the name of the primary. */
export type RedisSettings = Partial<RedisConfig> & { url: string; prefix: string };

const CONNECT_TIMEOUT_MS = 3_000;
/** Detects a lost connection that waits for jobs and sends nothing by itself. */
const KEEP_ALIVE_MS = 10_000;
const COMMAND_TIMEOUT_MS = 3_000;
/**
 * A connection without a received byte for this long after a command is closed: a host that lost
 * power sends nothing. Longer than the 10 s for which BullMQ lets a read block.
 */
const SILENCE_MS = { commands: 8_000, loops: 25_000 };
const MAX_RECONNECT_DELAY_MS = 5_000;
const SENTINEL_PORT = 26_379;

/** Returns the options of all connections. Throws a StartError if a file of TLS is unusable. */
function optionsOf(settings: RedisSettings) {
  const { url, sentinels = [], sentinel_user, sentinel_password } = settings;
  const tls = url.startsWith('rediss:') ? tlsOf(settings) : undefined;
  // With jitter, so that clients do not reconnect at the same time.
  const retryStrategy = (times: number) =>
    Math.min(times * 100, MAX_RECONNECT_DELAY_MS) * (0.75 + Math.random() / 4);
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy,
    // After a failover the former primary refuses writes, and the host name resolves to the new
    // one. READONLY is the error code of Redis, which ioredis has in the message only.
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
    keepAlive: KEEP_ALIVE_MS,
    // Setting the client info is optional and would need a permission.
    disableClientInfo: true,
    ...(tls && { tls }),
    ...(sentinels.length > 0 && {
      sentinels: sentinels.map((sentinel) => {
        const { hostname, port } = new URL(`redis://${sentinel}`);
        return {
          host: hostname.replace(/^\[(.*)\]$/, '$1'),
          port: port === '' ? SENTINEL_PORT : Number(port),
        };
      }),
      name: new URL(url).hostname,
      ...(sentinel_user !== undefined && { sentinelUsername: sentinel_user }),
      ...(sentinel_password !== undefined && { sentinelPassword: sentinel_password }),
      sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
      sentinelRetryStrategy: retryStrategy,
      // Its messages can end a reconnecting connection permanently. A silent or read-only primary
      // is detected without it.
      failoverDetector: false,
      ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    }),
  } satisfies RedisOptions;
}

/**
 * Opens a connection for commands: they fail at once if disconnected, and after 3 s without a
 * response. Throws a StartError.
 */
export function openRedis(settings: RedisSettings): Redis {
  const redis = new Redis(settings.url, {
    ...optionsOf(settings),
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS.commands,
  });
  // Errors appear in the next command; without a listener ioredis would print them.
  redis.on('error', () => undefined);
  return redis;
}

/**
 * Opens a connection for BullMQ's endless loops (Worker, QueueEvents): commands wait until Redis is
 * reachable. `close` also closes the duplicates that BullMQ opens, which it does not do itself
 * while Redis is unreachable. Throws a StartError.
 */
export function openLoopRedis(settings: RedisSettings): { redis: Redis; close(): void } {
  const opened: Redis[] = [];
  const register = (redis: Redis): Redis => {
    redis.on('error', () => undefined);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => register(duplicate(override));
    opened.push(redis);
    return redis;
  };
  const options = {
    ...optionsOf(settings),
    maxRetriesPerRequest: null,
    socketTimeout: SILENCE_MS.loops,
  };
  const redis = register(new Redis(settings.url, options));
  return {
    redis,
    close() {
      for (const one of opened) disconnect(one);
    },
  };
}

/** Closes a connection at once; pending commands reject. */
export function disconnect(redis: Redis): void {
  // While reconnecting, ioredis would not emit 'end'; in status 'wait' it does.
  if (redis.status === 'reconnecting') redis.status = 'wait';
  redis.disconnect();
}

/** Throws if the connection is not ready in time. */
export async function waitUntilReady(redis: Redis, limitMs: number): Promise<void> {
  if (redis.status !== 'ready')
    await once(redis, 'ready', { signal: AbortSignal.timeout(limitMs) });
}

/**
 * Returns the clock of Redis, epoch ms, and the id of its process, which changes with a restart or
 * a failover: the new process may contain jobs that the previous one had already handed out.
 */
export async function readServer(redis: Redis): Promise<{ runId: string; nowMs: number }> {
  const replies = await redis.pipeline().info('server').time().exec();
  const [info, time] = (replies ?? []).map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
  const [seconds, microseconds] = time as [string, string];
  return {
    runId: fieldOf(String(info), 'run_id') ?? 'unknown',
    nowMs: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
  };
}

/** Returns a field of INFO; null if it is missing. */
export function fieldOf(info: string, name: string): string | null {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
}

/** Reads and verifies the files of TLS. Throws a StartError that names the setting. */
function tlsOf({ tls_ca_file, tls_cert_file, tls_key_file }: RedisSettings) {
  const ca = readTlsFile('redis.tls_ca_file', tls_ca_file, (pem) => new X509Certificate(pem));
  const cert = readTlsFile('redis.tls_cert_file', tls_cert_file, (pem) => new X509Certificate(pem));
  const key = readTlsFile('redis.tls_key_file', tls_key_file, createPrivateKey);
  try {
    return { secureContext: createSecureContext({ ca, cert, key }) };
  } catch {
    throw new StartError(
      'redis.tls_key_file is not the key of the certificate in redis.tls_cert_file',
    );
  }
}

function readTlsFile(
  setting: string,
  file: string | undefined,
  parse: (pem: string) => unknown,
): string | undefined {
  if (file === undefined) return undefined;
  try {
    return readPem(file, parse);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : '';
    throw new StartError(`${setting} names a file that is no usable PEM file${code}`);
  }
}
