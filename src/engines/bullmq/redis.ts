import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';

export type RedisSettings = {
  url: string;
  /** Prefix of every key, also of BullMQ's. */
  prefix: string;
};

const CONNECT_TIMEOUT_MS = 3_000;
/** Detects a lost connection that waits for jobs and sends nothing by itself. */
const KEEP_ALIVE_MS = 10_000;
const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A connection without a received byte for this long after a command is closed: a host that lost power sends nothing, and a new
 * connection may reach its successor. Longer than the 10 s for which BullMQ lets a read block.
 */
const SILENCE_MS = { commands: 8_000, loops: 25_000 };
const MAX_RECONNECT_DELAY_MS = 5_000;

const COMMON = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // Retries indefinitely, 100 ms to 5 s apart, with jitter so that clients do not reconnect at the same time.
  retryStrategy: (times: number) => Math.min(times * 100, MAX_RECONNECT_DELAY_MS) * (0.75 + Math.random() / 4),
  // After a failover the former primary refuses writes, and the host name resolves to the new one.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  keepAlive: KEEP_ALIVE_MS,
  // Timeout for closing a connection gracefully.
  disconnectTimeout: 100,
} satisfies RedisOptions;

/** Opens a connection for commands: they fail at once if disconnected, and after 5 s without a response. */
export function openRedis(url: string): Redis {
  const redis = new Redis(url, {
    ...COMMON,
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

/** Opens a connection for BullMQ's endless loops (Worker): commands wait until Redis is reachable. */
export function openLoopConnection(url: string) {
  const opened: Redis[] = [];
  const register = (redis: Redis): Redis => {
    redis.on('error', () => undefined);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => register(duplicate(override));
    opened.push(redis);
    return redis;
  };
  const redis = register(new Redis(url, { ...COMMON, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS.loops }));
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
  if (redis.status !== 'ready') await once(redis, 'ready', { signal: AbortSignal.timeout(limitMs) });
}

/** Whether an error message of Redis refuses the credentials or permissions. */
export function isCredentialRefusal(message: string): boolean {
  return /^(?:WRONGPASS|NOAUTH|NOPERM)\b/.test(message);
}
