import type { Redis } from 'ioredis';
import { z } from 'zod';
import { parseJson } from '../../domain/json.ts';
import { escapeText } from '../../domain/text.ts';
import { POLLS_FORMAT, signatureSchema } from './poll-job.ts';
import { disconnect, openRedis, type RedisSettings, waitUntilReady } from './redis.ts';
import type { SignatureProblem, Signer } from './signer.ts';

/** Shown in logs, on dashboards and terminals: nothing in it is markup or a control character. */
const workerSchema = z.object({
  name: z.string().regex(/^[\w.-]{1,300}$/),
  version: z.string().regex(/^[\w.+-]{1,50}$/),
  in_flight: z.int().min(0).max(1_000_000),
  concurrency: z.int().min(1).max(1_000_000),
});
/** A worker as it announces itself. */
export type WorkerInfo = z.output<typeof workerSchema>;

const announcementSchema = z.object({
  format: z.literal(POLLS_FORMAT),
  worker: workerSchema,
  signature: signatureSchema,
});

/** A worker that gets no jobs: it is of an incompatible version, or its secret is not the server's. */
export type RefusedWorker = { name: string; reason: 'other_format' | SignatureProblem };

export type WorkerList = { workers: WorkerInfo[]; refused: RefusedWorker[] };

/** Announced so often, and forgotten after so long without. */
export const ANNOUNCE_MS = 1_000;
const FORGOTTEN_AFTER_MS = 5_000;
const LOOK_WITHIN_MS = 2_000;
/** More are not looked at, nor longer announcements: whoever writes to Redis could add any number. */
const MAX_WORKERS = 1_000;
const MAX_ANNOUNCEMENT_CHARS = 2_000;

/** Which workers are alive: a key of each, which goes by itself, and a set of their names. */
export class WorkerRegistry {
  readonly #redis: Redis;
  readonly #names: string;

  constructor(redis: Redis, { prefix }: Pick<RedisSettings, 'prefix'>) {
    this.#redis = redis;
    this.#names = `${prefix}:dawatch-workers:names`;
  }

  async announce(worker: WorkerInfo, signer: Signer): Promise<void> {
    const key = this.#keyOf(worker.name);
    const announcement = { format: POLLS_FORMAT, worker, signature: signer.sign('worker', signedWorker(worker)) };
    await this.#redis
      .multi()
      .sadd(this.#names, worker.name)
      .set(key, JSON.stringify(announcement), 'PX', FORGOTTEN_AFTER_MS)
      .exec();
  }

  async unregister(name: string): Promise<void> {
    await this.#redis.multi().srem(this.#names, name).del(this.#keyOf(name)).exec();
  }

  /** Those alive, by name. */
  async list(signer: Signer): Promise<WorkerList> {
    const names = await this.#redis.srandmember(this.#names, MAX_WORKERS);
    if (names.length === 0) return { workers: [], refused: [] };
    const asked = this.#redis.pipeline();
    for (const name of names) asked.getrange(this.#keyOf(name), 0, MAX_ANNOUNCEMENT_CHARS);
    const texts = (await asked.exec())?.map(([, text]) => (typeof text === 'string' ? text : ''));
    if (!texts) throw new Error('Redis gave up the question');
    const gone = names.filter((_name, index) => texts[index] === '');
    if (gone.length > 0) await this.#redis.srem(this.#names, gone);
    const found = names.flatMap((name, index) => (texts[index] ? [readAnnouncement(name, texts[index], signer)] : []));
    return {
      workers: found.flatMap((one) => ('worker' in one ? [one.worker] : [])).sort(byName),
      refused: found.flatMap((one) => ('refused' in one ? [one.refused] : [])).sort(byName),
    };
  }

  #keyOf(name: string): string {
    return `${this.#names}:${name}`;
  }
}

/** Names of those alive, for one look; undefined: Redis does not tell. */
export async function listWorkers(settings: RedisSettings, signer: Signer): Promise<string[] | undefined> {
  const redis = openRedis(settings.url);
  try {
    await waitUntilReady(redis, LOOK_WITHIN_MS);
    const { workers, refused } = await new WorkerRegistry(redis, settings).list(signer);
    return [...workers, ...refused].map(({ name }) => name);
  } catch {
    return undefined;
  } finally {
    disconnect(redis);
  }
}

function readAnnouncement(
  name: string,
  text: string,
  signer: Signer,
): { worker: WorkerInfo } | { refused: RefusedWorker } {
  const refused = (reason: RefusedWorker['reason']) => ({ refused: { name: escapeText(name), reason } });
  const parsed = announcementSchema.safeParse(parseJson(text));
  if (!parsed.success || parsed.data.worker.name !== name) return refused('other_format');
  const { worker, signature } = parsed.data;
  const verified = signer.verify('worker', signedWorker(worker), signature);
  return verified.kind === 'valid' ? { worker } : refused(verified.problem);
}

function signedWorker({ name, version, in_flight, concurrency }: WorkerInfo): unknown {
  return [name, version, in_flight, concurrency];
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
