import type { Redis } from 'ioredis';
import { z } from 'zod';
import { becomesReady, end, openRedis, type RedisSettings } from './redis.ts';

const workerSchema = z.object({
  name: z.string().min(1).max(200),
  version: z.string().max(50),
  in_flight: z.int().min(0),
  concurrency: z.int().min(1),
});
/** A worker as it announces itself. */
export type WorkerSeen = z.output<typeof workerSchema>;

/** Announced so often, and forgotten after so long without. */
export const ANNOUNCE_MS = 1_000;
const FORGOTTEN_AFTER_MS = 5_000;
const LOOK_WITHIN_MS = 2_000;

/** Which workers are alive: a key of each, which goes by itself, and a set of their names. */
export class WorkerRegister {
  readonly #redis: Redis;
  readonly #names: string;

  constructor(redis: Redis, { prefix }: Pick<RedisSettings, 'prefix'>) {
    this.#redis = redis;
    this.#names = `${prefix}:dawatch-workers:names`;
  }

  async announce(worker: WorkerSeen): Promise<void> {
    const key = this.#keyOf(worker.name);
    await this.#redis
      .multi()
      .sadd(this.#names, worker.name)
      .set(key, JSON.stringify(worker), 'PX', FORGOTTEN_AFTER_MS)
      .exec();
  }

  async leave(name: string): Promise<void> {
    await this.#redis.multi().srem(this.#names, name).del(this.#keyOf(name)).exec();
  }

  /** Those alive, by name. */
  async list(): Promise<WorkerSeen[]> {
    const names = await this.#redis.smembers(this.#names);
    if (names.length === 0) return [];
    const values = await this.#redis.mget(names.map((name) => this.#keyOf(name)));
    const gone = names.filter((_name, index) => values[index] === null);
    if (gone.length > 0) await this.#redis.srem(this.#names, gone);
    return values.flatMap((value) => (value === null ? [] : parse(value))).sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #keyOf(name: string): string {
    return `${this.#names}:${name}`;
  }
}

/** Who is alive, for one look; undefined: Redis does not tell. */
export async function workersSeen(settings: RedisSettings): Promise<WorkerSeen[] | undefined> {
  const redis = openRedis(settings.url);
  try {
    await becomesReady(redis, LOOK_WITHIN_MS);
    return await new WorkerRegister(redis, settings).list();
  } catch {
    return undefined;
  } finally {
    end(redis);
  }
}

/** Empty for what no worker of this version wrote. */
function parse(value: string): WorkerSeen[] {
  try {
    const parsed = workerSchema.safeParse(JSON.parse(value));
    return parsed.success ? [parsed.data] : [];
  } catch {
    return [];
  }
}
