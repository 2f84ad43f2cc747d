import type { Redis } from 'ioredis';
import { z } from 'zod';
import { parseJson } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import {
  MessageSigner,
  POLLS_FORMAT,
  type SignatureProblem,
  signatureSchema,
  workerNameSchema,
} from './messages.ts';
import { disconnect, openRedis, type RedisSettings, waitUntilReady } from './redis.ts';

/** Contains no markup and no control characters: it is shown in logs, dashboards and terminals. */
const workerSchema = z.object({
  name: workerNameSchema,
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

/**
 * A worker that gets no jobs: its version is incompatible, or its secret differs from the server's.
 */
export type RefusedWorker = { name: string; reason: 'other_format' | SignatureProblem };

export type WorkerList = { workers: WorkerInfo[]; refused: RefusedWorker[] };

/** Interval of announcements, and time after which a worker without one counts as gone. */
export const ANNOUNCE_MS = 1_000;
const EXPIRES_AFTER_MS = 5_000;
const LIST_WITHIN_MS = 2_000;
/** Limits for what other clients of Redis may have written. */
const MAX_WORKERS = 1_000;
const MAX_ANNOUNCEMENT_CHARS = 2_000;

/** The registered workers: one expiring key per worker, and a set of their names. */
export class WorkerRegistry {
  readonly #redis: Redis;
  readonly #names: string;

  constructor(redis: Redis, { prefix }: { prefix: string }) {
    this.#redis = redis;
    this.#names = `${prefix}:dawatch-workers:names`;
  }

  async announce(worker: WorkerInfo, signer: MessageSigner): Promise<void> {
    const key = this.#keyOf(worker.name);
    const announcement = {
      format: POLLS_FORMAT,
      worker,
      signature: signer.sign('worker', signedWorker(worker)),
    };
    await this.#redis
      .multi()
      .sadd(this.#names, worker.name)
      .set(key, JSON.stringify(announcement), 'PX', EXPIRES_AFTER_MS)
      .exec();
  }

  async unregister(name: string): Promise<void> {
    await this.#redis.multi().srem(this.#names, name).del(this.#keyOf(name)).exec();
  }

  /** Returns the live workers, sorted by name. */
  async list(signer: MessageSigner): Promise<WorkerList> {
    const names = await this.#redis.srandmember(this.#names, MAX_WORKERS);
    if (names.length === 0) return { workers: [], refused: [] };
    const pipeline = this.#redis.pipeline();
    for (const name of names) pipeline.getrange(this.#keyOf(name), 0, MAX_ANNOUNCEMENT_CHARS);
    const texts = (await pipeline.exec())?.map(([, text]) =>
      typeof text === 'string' ? text : '',
    );
    if (!texts) throw new Error('Redis aborted the pipeline');
    const expired = names.filter((_name, index) => texts[index] === '');
    if (expired.length > 0) await this.#redis.srem(this.#names, expired);
    const found = names.flatMap((name, index) =>
      texts[index] ? [readAnnouncement(name, texts[index], signer)] : [],
    );
    return {
      workers: found.flatMap((one) => ('worker' in one ? [one.worker] : [])).sort(byName),
      refused: found.flatMap((one) => ('refused' in one ? [one.refused] : [])).sort(byName),
    };
  }

  #keyOf(name: string): string {
    return `${this.#names}:${name}`;
  }
}

/** Returns the names of all live workers; undefined if Redis is not usable. */
export async function listWorkers(
  settings: RedisSettings & { secret?: string | undefined },
): Promise<string[] | undefined> {
  const redis = openRedis(settings);
  try {
    await waitUntilReady(redis, LIST_WITHIN_MS);
    const signer = new MessageSigner(settings.secret);
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
  signer: MessageSigner,
): { worker: WorkerInfo } | { refused: RefusedWorker } {
  const refused = (reason: RefusedWorker['reason']) => ({
    refused: { name: escapeText(name), reason },
  });
  const parsed = announcementSchema.safeParse(parseJson(text));
  if (!parsed.success || parsed.data.worker.name !== name) return refused('other_format');
  const { worker, signature } = parsed.data;
  const problem = signer.problemOf('worker', signedWorker(worker), signature);
  return problem === undefined ? { worker } : refused(problem);
}

function signedWorker({ name, version, in_flight, concurrency }: WorkerInfo): unknown {
  return [name, version, in_flight, concurrency];
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
