import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Redis, type RedisOptions } from 'ioredis';
import { readPem } from '../lib/bounded-file.ts';
import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';

/** The settings of a connection, named as in the section `redis`. */
export type RedisAddress = RedisTlsFiles & {
  /** With `sentinels`, its host is the name of the primary. */
  url: string;
  /** Addresses of Sentinels, `host:port` or `host`. */
  sentinels?: readonly string[] | undefined;
  sentinel_user?: string | undefined;
  sentinel_password?: string | undefined;
};

export type RedisSettings = RedisAddress & {
  /** Prefix of every key, also of BullMQ's. */
  prefix: string;
};

/**
 * Returns undefined if no Redis is configured. Throws a StartError if a file of TLS is unusable.
 */
export function redisOf({ redis }: Config): (Config['redis'] & { url: string }) | undefined {
  const { url } = redis;
  if (url === undefined) return undefined;
  const problem = problemOfTls(redis);
  if (problem !== undefined) throw new StartError(problem);
  return { ...redis, url };
}

const CONNECT_TIMEOUT_MS = 3_000;
/** Detects a lost connection that waits for jobs and sends nothing by itself. */
const KEEP_ALIVE_MS = 10_000;
const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A connection without a received byte for this long after a command is closed: a host that lost
 * power sends nothing, and a new connection may reach its successor. Longer than the 10 s for which
 * BullMQ lets a read block.
 */
const SILENCE_MS = { commands: 8_000, loops: 25_000 };
const MAX_RECONNECT_DELAY_MS = 5_000;
const SENTINEL_PORT = 26_379;

/**
 * Returns the options that all connections share. Throws a RedisTlsError if its files have never
 * been usable.
 */
function optionsOf(address: RedisAddress) {
  const isTls = address.url.startsWith('rediss:');
  const tls = isTls ? tlsOf(address) : undefined;
  // Retries indefinitely, 100 ms to 5 s apart, with jitter so that clients do not reconnect at the
  // same time.
  const retryStrategy = (times: number) => {
    if (tls) refreshTls(tls, address);
    return Math.min(times * 100, MAX_RECONNECT_DELAY_MS) * (0.75 + Math.random() / 4);
  };
  return {
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy,
    // After a failover the former primary refuses writes, and the host name resolves to the new
    // one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    keepAlive: KEEP_ALIVE_MS,
    // Setting the client info is optional and would need a permission.
    disableClientInfo: true,
    // Timeout for closing a connection gracefully.
    disconnectTimeout: 100,
    ...(tls && { tls }),
    ...(address.sentinels?.length && {
      ...sentinelOptionsOf(address, address.sentinels),
      sentinelRetryStrategy: retryStrategy,
      ...(tls && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
    }),
  } satisfies RedisOptions;
}

function sentinelOptionsOf(
  { url, sentinel_user, sentinel_password }: RedisAddress,
  sentinels: readonly string[],
) {
  return {
    sentinels: sentinels.map((sentinel) => {
      const { hostname, port } = new URL(`redis://${sentinel}`);
      return { host: withoutBrackets(hostname), port: port === '' ? SENTINEL_PORT : Number(port) };
    }),
    name: new URL(url).hostname,
    ...(sentinel_user !== undefined && { sentinelUsername: sentinel_user }),
    ...(sentinel_password !== undefined && { sentinelPassword: sentinel_password }),
    sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
    // Messages of the detector can end a reconnecting connection permanently. A silent or read-only
    // primary is detected without it.
    failoverDetector: false,
  } satisfies RedisOptions;
}

/** Returns an IPv6 address without its brackets. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/**
 * Opens a connection for commands: they fail at once if disconnected, and after 5 s without a
 * response. Throws a RedisTlsError.
 */
export function openRedis(address: RedisAddress): Redis {
  const redis = new Redis(address.url, {
    ...optionsOf(address),
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

export type LoopConnection = ReturnType<typeof openLoopConnection>;

/**
 * Opens a connection for BullMQ's endless loops (Worker): commands wait until Redis is reachable.
 * Throws a RedisTlsError.
 */
export function openLoopConnection(address: RedisAddress) {
  const opened: Redis[] = [];
  const register = (redis: Redis): Redis => {
    redis.on('error', () => undefined);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => register(duplicate(override));
    opened.push(redis);
    return redis;
  };
  const options = {
    ...optionsOf(address),
    maxRetriesPerRequest: null,
    socketTimeout: SILENCE_MS.loops,
  };
  const redis = register(new Redis(address.url, options));
  return {
    redis,
    /** Closes the connection and all duplicates that BullMQ created of it. */
    disconnect(): void {
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
 * Whether an error message of Redis, or of all Sentinels, refuses the credentials or permissions.
 */
export function isCredentialRefusal(message: string): boolean {
  return /(?:^|Last error: )(?:WRONGPASS|NOAUTH|NOPERM)\b/.test(message);
}

/** Whether an error message of Redis denies a command or a key, also one of a script. */
export function isDenial(message: string): boolean {
  return /\bNOPERM\b|\bACL failure in script\b|user executing the script can't/.test(message);
}

/** Paths of PEM files. The certificate and its key are set together. */
export type RedisTlsFiles = {
  /** Certificates of the authorities that are trusted instead of those of Node. */
  tls_ca_file?: string | undefined;
  /** Certificate of this client, optionally followed by intermediate certificates. */
  tls_cert_file?: string | undefined;
  tls_key_file?: string | undefined;
};

/** A file of the settings is unusable. The message names the setting and quotes no content. */
class RedisTlsError extends Error {
  override readonly name = 'RedisTlsError';
}

/**
 * The TLS options of a connection; replaced in place, so that every new connection uses the current
 * files.
 */
type RedisTls = { secureContext?: SecureContext };

/** Reads and verifies the files. Throws a RedisTlsError. */
function readTls({ tls_ca_file, tls_cert_file, tls_key_file }: RedisTlsFiles): RedisTls {
  const ca = readTlsFile('redis.tls_ca_file', tls_ca_file, (pem) => new X509Certificate(pem));
  const cert = readTlsFile('redis.tls_cert_file', tls_cert_file, (pem) => new X509Certificate(pem));
  const key = readTlsFile('redis.tls_key_file', tls_key_file, createPrivateKey);
  try {
    return { secureContext: createSecureContext({ ca, cert, key }) };
  } catch {
    throw new RedisTlsError(
      'redis.tls_key_file is not the key of the certificate in redis.tls_cert_file',
    );
  }
}

/** Returns the text of a file; undefined without one. `parse` throws if the text is unusable. */
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
    throw new RedisTlsError(`${setting} names a file that is no usable PEM file${code}`);
  }
}

/** By the paths of the files. All connections with the same files share the options. */
const inUse = new Map<string, RedisTls>();

/**
 * Returns the TLS options of new connections. Keeps those of the previous call if a file is
 * unusable now, because files may be replaced one after the other. Throws a RedisTlsError if the
 * files have never been usable.
 */
function tlsOf(files: RedisTlsFiles): RedisTls {
  const paths = JSON.stringify([files.tls_ca_file, files.tls_cert_file, files.tls_key_file]);
  const tls = inUse.get(paths);
  if (tls) {
    refreshTls(tls, files);
    return tls;
  }
  const read = readTls(files);
  inUse.set(paths, read);
  return read;
}

/**
 * Reads the files again, because certificates are replaced before they expire. Keeps the previous
 * ones if a file is unusable.
 */
function refreshTls(tls: RedisTls, files: RedisTlsFiles): void {
  try {
    Object.assign(tls, readTls(files));
  } catch {
    // The next attempt reads the files again.
  }
}

/** Returns the reason why the files are unusable; undefined if they are usable. */
export function problemOfTls(files: RedisTlsFiles): string | undefined {
  try {
    readTls(files);
    return undefined;
  } catch (error) {
    if (error instanceof RedisTlsError) return error.message;
    throw error;
  }
}

/** With any other policy a full Redis may evict pending jobs. */
export const SAFE_EVICTION_POLICY = 'noeviction';

/**
 * Returns whether a reply of INFO comes from a node of a cluster. Dragonfly emulates one in a
 * single process.
 */
export function isCluster(info: string): boolean {
  return /^redis_mode:cluster\b/m.test(info) && !/^dragonfly_version:/m.test(info);
}

export type RedisInfo = ReturnType<typeof readRedisInfo>;

/** Returns the relevant fields of INFO; null if missing. */
export function readRedisInfo(info: string) {
  const field = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
  const appendOnly = field('aof_enabled');
  return {
    version: field('redis_version'),
    evictionPolicy: field('maxmemory_policy'),
    /** Whether its append-only file is on. */
    isAppendOnly: appendOnly === null ? null : appendOnly === '1',
    role: field('role'),
    isCluster: isCluster(info),
    /** Number of connected replicas; 0 if missing. */
    replicas: Number(field('connected_slaves') ?? 0),
  };
}
