import { EVENTS_QUEUE } from '../../../src/redis/events-queue.ts';
import { type RedisData, redisModel } from '../redis/redis-model.ts';
import { PREFIX } from './server.ts';

/** Takes the events of one ledger from its BullMQ queue. */
export class Consumer {
  /**
   * The ids of the jobs, which are those of the events. Those that Redis lost before they were
   * taken count as received.
   */
  readonly received = new Set<string>();
  readonly #queue = `${PREFIX}:${EVENTS_QUEUE}`;

  take(): void {
    const { jobs } = redisModel.queue(this.#queue);
    for (const id of jobs.keys()) this.received.add(id);
    jobs.clear();
  }

  /** Redis may lose the jobs that nobody has taken. */
  lose({ queues }: RedisData): void {
    for (const id of queues.get(this.#queue)?.jobs.keys() ?? []) this.received.add(id);
  }
}
