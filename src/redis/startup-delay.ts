import type { Queue } from 'bullmq';
import type { Clock } from '../lib/clock.ts';
import { pollJobSchema } from './poll-job.ts';
import type { RedisLink } from './redis-link.ts';

const CHECK_MS = 100;
/** Maximum time between a worker's check of the fencing token and its requests. */
const START_MS = 500;

/**
 * Resolves once no worker can be polling for the previous process of this server: those polls are
 * not in the request budget of this process. With Redis this is the case after a new fencing token,
 * when no older job is active. A Redis that was emptied, restarted or replaced may not know the
 * active jobs; then the longest request has to end. Without Redis all leases have to expire.
 */
export function untilPreviousPollsEnded(deps: {
  queue: Queue;
  link: RedisLink;
  clock: Clock;
  /** Remaining time of the longest lease of the previous process; 0: there is none. */
  leasesLastMs: number;
  /** The longest request timeout. */
  timeoutMs: number;
  /** Resolves the promise at once. */
  signal: AbortSignal;
}): Promise<void> {
  const { queue, link, clock, leasesLastMs, timeoutMs, signal } = deps;
  if (leasesLastMs <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    let isOver = false;
    const end = () => {
      isOver = true;
      cancelLimit();
      resolve();
    };
    const cancelLimit = clock.after(leasesLastMs, end);
    signal.addEventListener('abort', end, { once: true });
    link.onFencingToken(async ({ isSameRedis }) => {
      const until = clock.now() + timeoutMs + START_MS;
      while (
        !isOver &&
        clock.now() < until &&
        (!isSameRedis || (await hasPreviousJobs(queue, link)))
      )
        await new Promise<void>((next) => clock.after(CHECK_MS, next));
      // If Redis is disconnected again, the next fencing token starts a new wait, or the leases
      // expire.
      if (!isOver && link.usable) end();
    });
  });
}

/** Whether a job of the previous process is active and has not expired. */
async function hasPreviousJobs(queue: Queue, link: RedisLink): Promise<boolean> {
  try {
    const active = await queue.getJobs(['active']);
    return active.some((job) => {
      const parsed = pollJobSchema.safeParse(job?.data);
      const now = link.usable?.redisNow ?? Number.NEGATIVE_INFINITY;
      return (
        parsed.success &&
        parsed.data.fencing_token !== link.usable?.fencingToken &&
        parsed.data.expires_at > now
      );
    });
  } catch {
    return true;
  }
}
