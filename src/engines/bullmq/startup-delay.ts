import type { Queue } from 'bullmq';
import type { Clock } from '../../domain/clock.ts';
import { pollJobSchema } from './poll-job.ts';
import type { RedisLink } from './redis-link.ts';

const LOOK_MS = 100;
/** Between a worker's look at the epoch and its requests. */
const START_MS = 500;

/**
 * Resolves once no worker can be asking any more what an earlier life of this server handed out: the budget of this life
 * would not know of it. With Redis that is after a new epoch, when nothing older is under way; a Redis that was emptied,
 * restarted or replaced may not know that, so that every request of then has to be over. While Redis is away, every lease.
 */
export function untilPreviousPollsEnded(deps: {
  queue: Queue;
  link: RedisLink;
  clock: Clock;
  /** How long a lease of that life may still last; 0: there was none. */
  leasesLastMs: number;
  /** The longest that a request takes. */
  timeoutMs: number;
  /** Nobody waits for it any more. */
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
    link.onFencingToken(async ({ goesOn }) => {
      const until = clock.now() + timeoutMs + START_MS;
      while (!isOver && clock.now() < until && (!goesOn || (await isSomethingUnderWay(queue, link))))
        await new Promise<void>((next) => clock.after(LOOK_MS, next));
      // Gone again in between: the next epoch looks anew, or the leases run out.
      if (!isOver && link.usable) end();
    });
  });
}

async function isSomethingUnderWay(queue: Queue, link: RedisLink): Promise<boolean> {
  try {
    const active = await queue.getJobs(['active']);
    return active.some((job) => {
      const parsed = pollJobSchema.safeParse(job?.data);
      const now = link.usable?.redisNow ?? Number.NEGATIVE_INFINITY;
      return parsed.success && parsed.data.epoch !== link.usable?.epoch && parsed.data.expires_at > now;
    });
  } catch {
    return true;
  }
}
