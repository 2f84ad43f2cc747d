import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { escapeText } from '../lib/text.ts';
import {
  type Channel,
  failed,
  type Outgoing,
  type SendResult,
} from '../notifications/channels/channel.ts';
import type { EventBody } from '../notifications/event-body.ts';
import {
  disconnect,
  EVENTS_QUEUE,
  fieldOf,
  openRedis,
  type RedisSettings,
  waitUntilReady,
} from './connections.ts';

/** Above this the queue has no consumers, and Redis keeps the jobs in memory. */
const MAX_WAITING = 100_000;
const CONNECT_TIMEOUT_MS = 3_000;
const REPLICATED_WITHIN_MS = 2_000;
const DAY_S = 86_400;

/** How long finished jobs are kept, and with them the deduplication by job id. */
const RETENTION = {
  removeOnComplete: { age: DAY_S, count: 10_000 },
  removeOnFail: { age: 7 * DAY_S, count: 10_000 },
};

/** The job name is the event type, the data its body, the job id the event id. */
export function createQueueChannel(settings: RedisSettings): Channel {
  const redis = openRedis(settings);
  // With the version check, a queue whose Redis disconnects during the check never works again.
  const queue = new Queue<EventBody>(EVENTS_QUEUE, {
    connection: redis,
    skipVersionCheck: true,
  });
  queue.on('error', () => undefined);

  async function add(batch: readonly Outgoing[]): Promise<SendResult> {
    await waitUntilReady(redis, CONNECT_TIMEOUT_MS);
    if ((await queue.getWaitingCount()) >= MAX_WAITING)
      return failed(`the queue ${EVENTS_QUEUE} has ${MAX_WAITING} waiting jobs and no consumer`, {
        retryAfterMs: null,
      });
    await queue.addBulk(
      batch.map(({ event, json }) => ({
        name: event.type,
        data: JSON.parse(json) as EventBody,
        opts: { jobId: event.id, ...RETENTION },
      })),
    );
    if (!(await isReplicated(redis)))
      return failed(
        `no replica of Redis has confirmed the events within ${REPLICATED_WITHIN_MS / 1_000} s`,
        {
          retryAfterMs: null,
        },
      );
    return { kind: 'delivered', httpStatus: null, response: null };
  }

  return {
    address: EVENTS_QUEUE,
    maxBatch: 100,
    retryDelayMs: queueRetryDelayMs,
    async send(batch, signal) {
      if (queue.closing || signal.aborted) return failed('the attempt was aborted');
      const { promise, resolve, reject } = Promise.withResolvers<SendResult>();
      const abort = () => resolve(failed('the attempt was aborted'));
      signal.addEventListener('abort', abort, { once: true });
      add(batch).catch(resultOfError).then(resolve, reject);
      return promise.finally(() => signal.removeEventListener('abort', abort));
    },
    async close() {
      await queue.close().catch(() => undefined);
      disconnect(redis);
    },
  };
}

/** Whether a replica confirmed the jobs, or none is connected. If not, they are sent again. */
async function isReplicated(redis: Redis): Promise<boolean> {
  const replicas = Number(fieldOf(await redis.info('replication'), 'connected_slaves') ?? 0);
  return replicas === 0 || (await redis.wait(1, REPLICATED_WITHIN_MS)) > 0;
}

/** 1, 2, 4 … 60 s without end: an unavailable queue is not a refusal by a receiver. */
function queueRetryDelayMs(attempts: number): number {
  return Math.min(2 ** (attempts - 1), 60) * 1_000;
}

/**
 * Rethrows serialization errors, which would be retried without end, as an unavailable Redis is.
 */
function resultOfError(error: unknown): SendResult {
  if (error instanceof RangeError || error instanceof TypeError || error instanceof SyntaxError)
    throw error;
  const isReply = error instanceof Error && error.name === 'ReplyError';
  const reason = isReply
    ? `refuses the events: ${escapeText(error.message, 200)}`
    : 'is not reachable';
  return failed(`Redis ${reason}`, { retryAfterMs: null });
}
