import { once } from 'node:events';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { EventBody } from '../../domain/notifications/event-body.ts';
import type { Channel, Outgoing, SendResult } from './channel.ts';
import { failed } from './chat.ts';

export const EVENTS_QUEUE = 'dawatch-events';

export type QueueOptions = {
  redisUrl: string;
  /** Of every key of the queue; BullMQ's own if absent. */
  prefix?: string;
};

/** More jobs than this waiting: nobody takes them, and Redis keeps them in memory. */
const MAX_WAITING = 100_000;
const CONNECT_TIMEOUT_MS = 3_000;
const COMMAND_TIMEOUT_MS = 5_000;
const SILENCE_MS = 8_000;
const DAY_S = 86_400;
const AWAY = 'Redis is not reachable';

/** How long a job that was dealt with is kept, and with it the protection against doing it twice. */
const RETENTION = {
  removeOnComplete: { age: DAY_S, count: 10_000 },
  removeOnFail: { age: 7 * DAY_S, count: 10_000 },
};

/** Jobs of a BullMQ queue: the name is the event's type, the data its body, the id its id. */
export function createQueueChannel({ redisUrl, prefix = 'bull' }: QueueOptions): Channel {
  const redis = new Redis(redisUrl, {
    // What can't be sent at once fails: the ledger keeps it, and a second queue in memory would be without end.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // Without a byte for so long the connection is dead, whatever the system says: a new one may reach another host.
    socketTimeout: SILENCE_MS,
    disconnectTimeout: 100,
    commandTimeout: COMMAND_TIMEOUT_MS,
    retryStrategy: (times) => Math.min(times * 100, 2_000),
  });
  // What is wrong shows at the next attempt; without listeners both would write it to the console.
  redis.on('error', () => undefined);
  // With the version check, Redis going away while it runs would leave a queue that never works again.
  const queue = new Queue<EventBody>(EVENTS_QUEUE, { connection: redis, prefix, skipVersionCheck: true });
  queue.on('error', () => undefined);

  let closing: Promise<void> | undefined;
  async function close(): Promise<void> {
    await queue.close().catch(() => undefined);
    // Between two attempts to connect there is nothing to end, and no 'end' comes.
    const isOpen = redis.status !== 'end' && redis.status !== 'reconnecting';
    const ended = new Promise<void>((resolve) => redis.once('end', () => resolve()));
    redis.disconnect();
    if (isOpen) await ended;
  }

  async function add(batch: readonly Outgoing[], signal: AbortSignal): Promise<SendResult> {
    if (!(await becomesReady(redis, signal))) return away();
    if ((await queue.getWaitingCount()) >= MAX_WAITING)
      return failed(`nobody takes the jobs of ${EVENTS_QUEUE}`, { retryAfterMs: null });
    await queue.addBulk(
      batch.map(({ event, json }) => ({
        name: event.type,
        data: JSON.parse(json) as EventBody,
        opts: { jobId: event.id, ...RETENTION },
      })),
    );
    return { kind: 'delivered', httpStatus: null, response: null };
  }

  return {
    maxBatch: 100,
    retryDelayMs: queueRetryDelayMs,
    async send(batch, signal) {
      if (closing || signal.aborted) return failed('the attempt was stopped');
      const { promise, resolve, reject } = Promise.withResolvers<SendResult>();
      const stop = () => resolve(failed('the attempt was stopped'));
      signal.addEventListener('abort', stop, { once: true });
      add(batch, signal).catch(ofRedis).then(resolve, reject);
      return promise.finally(() => signal.removeEventListener('abort', stop));
    },
    close() {
      closing ??= close();
      return closing;
    },
  };
}

/** 1, 2, 4 … 60 s and then 60 s for ever: a queue that is down is not a receiver that refuses. */
function queueRetryDelayMs(attempts: number): number {
  return Math.min(2 ** (attempts - 1), 60) * 1_000;
}

/** An event that can not be written must not look like a Redis that is away: that is waited for without end. */
function ofRedis(error: unknown): SendResult {
  if (error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError) throw error;
  return away();
}

function away(): SendResult {
  return failed(AWAY, { retryAfterMs: null });
}

async function becomesReady(redis: Redis, signal: AbortSignal): Promise<boolean> {
  if (redis.status === 'ready') return true;
  if (redis.status === 'end') return false;
  try {
    await once(redis, 'ready', { signal: AbortSignal.any([signal, AbortSignal.timeout(CONNECT_TIMEOUT_MS)]) });
    return true;
  } catch {
    return false;
  }
}
