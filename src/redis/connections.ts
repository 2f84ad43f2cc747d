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
  // After a failover the host name resolves to the new primary. In errors of scripts, Redis 6.2 has
  // the code of a replica behind its own; with replica-serve-stale-data no, it is MASTERDOWN.
  reconnectOnError: ({ message }: Error) => /\b(?:READONLY|MASTERDOWN)\b/.test(message),
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
  handleErrors(redis);
  return redis;
}

/** Errors appear in the next command; without a listener ioredis would print them. */
function handleErrors(redis: Redis): void {
  redis.on('error', (error: Error & { command?: { name: string } }) => {
    // ioredis would use database 0.
    if (error.command?.name === 'select') redis.disconnect(true);
  });
}

/**
 * For BullMQ's endless loops: commands wait until Redis is reachable. `close` also closes BullMQ's
 * duplicates, which it leaves open while Redis is unreachable.
 */
export function openLoopRedis({ url }: RedisSettings) {
  const opened: Redis[] = [];
  const register = (redis: Redis): Redis => {
    handleErrors(redis);
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
    /** Connects again: a connection that only reads notices no change of the primary. */
    reconnect() {
      for (const one of opened) if (one.status === 'ready') one.disconnect(true);
    },
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

export const POLLS_QUEUE = 'dawatch-polls';
/** The data of a job is the body of POST /v1/submissions. */
export const SUBMISSIONS_QUEUE = 'dawatch-submissions';
export const EVENTS_QUEUE = 'dawatch-events';
const QUEUES = [POLLS_QUEUE, SUBMISSIONS_QUEUE, EVENTS_QUEUE];

/** Returns the paused queues. Rejects if Redis refuses a write: it is full, or a replica. */
export async function probe(redis: Redis): Promise<string[]> {
  const [, , ...paused] = await Promise.all([
    redis.set('bull:dawatch-probe', '1', 'PX', 10_000),
    readServer(redis),
    ...QUEUES.map((queue) => redis.hexists(`bull:${queue}:meta`, 'paused')),
  ]);
  return QUEUES.filter((_, index) => paused[index] === 1);
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
