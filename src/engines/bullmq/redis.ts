import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';

export type RedisSettings = {
  url: string;
  /** Of every key, as BullMQ's. */
  prefix: string;
};

const CONNECT_TIMEOUT_MS = 3_000;
/** A connection that waits for jobs says nothing by itself; one that is gone must be noticed. */
const KEEP_ALIVE_MS = 10_000;
const COMMAND_TIMEOUT_MS = 5_000;
/**
 * A command without a byte in answer for so long means that the connection is dead, whatever the system says: a host that lost
 * its power says nothing, and a new connection may reach its successor. Above the 10 s that BullMQ lets a read wait.
 */
const SILENCE_MS = { commands: 8_000, loops: 25_000 };
const MAX_RECONNECT_DELAY_MS = 5_000;

const COMMON = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  // For ever, 100 ms to 5 s apart, and not all in step after an outage that met them all.
  retryStrategy: (times: number) => Math.min(times * 100, MAX_RECONNECT_DELAY_MS) * (0.75 + Math.random() / 4),
  // What was the primary until a failover refuses to write: the name leads to another one by now.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  keepAlive: KEEP_ALIVE_MS,
  // Until what is left of an ended connection is given up: nothing waits for it.
  disconnectTimeout: 100,
} satisfies RedisOptions;

/** For commands: what can't be sent now fails now, and no answer within 5 s is none. */
export function openRedis(url: string): Redis {
  const redis = new Redis(url, {
    ...COMMON,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: COMMAND_TIMEOUT_MS,
    socketTimeout: SILENCE_MS.commands,
  });
  // What is wrong shows at the next command; without a listener it would go to the console.
  redis.on('error', () => undefined);
  return redis;
}

export type LoopConnection = {
  redis: Redis;
  /** Ends the connection and every copy that BullMQ made of it, whatever they are doing. */
  disconnect(): void;
};

/** For BullMQ's endless loops (Worker, QueueEvents): a command waits until Redis is there, however long that takes. */
export function openLoopConnection(url: string): LoopConnection {
  const opened: Redis[] = [];
  const keep = (redis: Redis): Redis => {
    redis.on('error', () => undefined);
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => keep(duplicate(override));
    opened.push(redis);
    return redis;
  };
  const redis = keep(new Redis(url, { ...COMMON, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS.loops }));
  return {
    redis,
    disconnect() {
      for (const one of opened) disconnect(one);
    },
  };
}

/** Ends it at once, whatever it is doing; whoever waits for it is told. */
export function disconnect(redis: Redis): void {
  // Between two attempts to connect it would be silent about its end; before the first it is not.
  if (redis.status === 'reconnecting') redis.status = 'wait';
  redis.disconnect();
}

/** Throws if it is not there in time. */
export async function waitUntilReady(redis: Redis, limitMs: number): Promise<void> {
  if (redis.status !== 'ready') await once(redis, 'ready', { signal: AbortSignal.timeout(limitMs) });
}

/** Whether an error of Redis is about our credentials, by how it begins. */
export function isCredentialRefusal(message: string): boolean {
  return /^(?:WRONGPASS|NOAUTH|NOPERM)\b/.test(message);
}

/** Waits for `work`, but no longer than `limitMs`; what comes of it later is nobody's business. */
export async function withTimeout(limitMs: number, work: Promise<unknown>): Promise<'done' | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs);
  });
  try {
    return await Promise.race([
      work.then(
        () => 'done' as const,
        () => 'done' as const,
      ),
      limit,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
