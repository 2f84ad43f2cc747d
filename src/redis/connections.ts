import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';

export type RedisSettings = { url: string };

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

const OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // With jitter, so that clients do not reconnect at the same time.
  retryStrategy: (times: number) =>
    Math.min(times * 100, MAX_RECONNECT_DELAY_MS) * (0.75 + Math.random() / 4),
  // After a failover the former primary refuses writes, and the host name resolves to the new one.
  // READONLY is the error code of Redis, which ioredis has in the message only.
  reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
  keepAlive: KEEP_ALIVE_MS,
  // Setting the client info is optional and would need a permission.
  disableClientInfo: true,
} satisfies RedisOptions;

/** Commands fail at once if disconnected, and after 3 s without a response. */
export function openRedis({ url }: RedisSettings): Redis {
  const redis = new Redis(url, {
    ...OPTIONS,
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
 * For BullMQ's endless loops: commands wait until Redis is reachable. `close` also closes the
 * duplicates that BullMQ opens, which it leaves open while Redis is unreachable.
 */
export function openLoopRedis({ url }: RedisSettings): { redis: Redis; close(): void } {
  const opened: Redis[] = [];
  const register = (redis: Redis): Redis => {
    redis.on('error', () => undefined);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => register(duplicate(override));
    opened.push(redis);
    return redis;
  };
  const options = {
    ...OPTIONS,
    maxRetriesPerRequest: null,
    socketTimeout: SILENCE_MS.loops,
  };
  const redis = register(new Redis(url, options));
  return {
    redis,
    close() {
      for (const one of opened) disconnect(one);
    },
  };
}

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
 * `runId` changes with a restart or failover: the new process may have jobs that were handed out.
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

export function fieldOf(info: string, name: string): string | null {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
}
