import { onTestFinished } from 'vitest';
import type { RedisSettings } from '../../../src/redis/connections.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { openProducer } from '../../support/redis/producer.ts';
import { until } from '../../support/until.ts';
import { prepareWorld } from './world.ts';

export type RedisWorld = Awaited<ReturnType<typeof prepareRedisWorld>>;

const BATCH = 10;
const PAUSE_MS = 500;
/** Rounds of load before a fault. */
const ROUNDS = 3;

/**
 * The product with a Redis and two workers. `redisUrl` may lead to a proxy; producers use
 * `producer`, and retry as docs/queues.md requires.
 */
export async function prepareRedisWorld(
  name: string,
  options: NonNullable<Parameters<typeof prepareWorld>[1]> & {
    redisUrl: string;
    producer?: RedisSettings;
  },
) {
  const world = await prepareWorld(name, { workers: 2, sandbox: { latencyMs: 4_000 }, ...options });
  const { redisUrl, producer = { url: redisUrl } } = options;
  const given = new AbortController();
  onTestFinished(() => given.abort());
  const enqueue = async (): Promise<void> => {
    const ids = world.submit(BATCH);
    await openProducer(producer).enqueue(ids, given.signal);
    for (const id of ids) world.expected.set(id, 'finalized');
  };
  return {
    ...world,
    /** Keeps polls, intake jobs and HTTP requests in flight from before a fault until after it. */
    async through(fault: () => Promise<void>): Promise<void> {
      let isOver = false;
      let rounds = 0;
      const jobs: Promise<void>[] = [];
      const load = async () => {
        while (!isOver) {
          const job = enqueue();
          // If the fault itself fails, the test ends before it awaits the jobs, and their abort is
          // no second failure.
          job.catch(() => {});
          jobs.push(job);
          await world.track(BATCH);
          rounds += 1;
          await sleep(PAUSE_MS);
        }
      };
      const loading = load();
      loading.catch(() => {});
      const untilRound = (round: number) => Promise.race([until(() => rounds >= round), loading]);
      try {
        await untilRound(ROUNDS);
        await fault();
        await untilRound(rounds + 1);
      } finally {
        isOver = true;
      }
      await loading;
      await Promise.all(jobs);
    },
  };
}

/** Resolves once the server has logged the event the given number of times. */
export async function untilLogged(
  { server }: Pick<Awaited<ReturnType<typeof prepareWorld>>, 'server'>,
  event: string,
  times = 1,
): Promise<void> {
  while (server.logged(event).length < times) {
    if (server.isGone()) throw new Error(`the server ended before it logged ${event}`);
    await sleep(50);
  }
}
