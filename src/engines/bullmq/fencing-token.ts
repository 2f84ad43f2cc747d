import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { RedisSettings } from './redis.ts';
import type { Signer, Verified } from './signer.ts';

/** What Redis says of itself in one go. */
export type RedisState = {
  /** Which process this is: another one after a restart or a failover. */
  runId: string;
  /** Undefined: none is set. */
  epoch: string | undefined;
  /** Its clock, epoch milliseconds, somewhen between the question and the answer. */
  redisMs: number;
};

/**
 * The name of one life of the server, kept in Redis: workers ask only what the server of this very life handed out. It also
 * names the Redis process it was written to. One that comes back with an older state, as after a failover, brings back
 * jobs that were asked already; by its run id nobody takes them for new.
 */
export class FencingTokenStore {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #probe: string;

  constructor(redis: Redis, { prefix }: Pick<RedisSettings, 'prefix'>) {
    this.#redis = redis;
    this.#key = `${prefix}:dawatch-workers:epoch`;
    this.#probe = `${prefix}:dawatch-workers:probe`;
  }

  /** Over one connection, so that all of it is of the same Redis. Throws what Redis says if it refuses. */
  async read(): Promise<RedisState> {
    return momentOf(await this.#question().exec());
  }

  /** The same, and proves that Redis takes writes: one that is full, or a replica, answers every question. */
  async probe(): Promise<RedisState> {
    return momentOf(await this.#question().set(this.#probe, '1', 'PX', 10_000).exec());
  }

  #question() {
    return this.#redis.pipeline().info('server').get(this.#key).time();
  }

  /** Begins a new one, signed where there is a secret: workers see from it whether theirs is the server's. */
  async begin(runId: string, signer: Signer): Promise<string> {
    const life = randomUUID();
    const signature = signer.sign('server', [runId, life]);
    const epoch = [runId, life, ...(signature === undefined ? [] : [signature])].join('/');
    await this.#redis.set(this.#key, epoch);
    return epoch;
  }
}

/** Whether the server that began the epoch has a secret of `signer`. */
export function verifyFencingToken(epoch: string, signer: Signer): Verified {
  const [runId, life, signature] = epoch.split('/');
  return signer.verify('server', [runId, life], signature);
}

/** Random, and short enough to be part of the ids of jobs. */
export function tokenIdOf(epoch: string): string {
  return epoch.split('/')[1] ?? '';
}

export function isIssuedBy(epoch: string, runId: string): boolean {
  return epoch.startsWith(`${runId}/`);
}

function momentOf(answers: [error: Error | null, result: unknown][] | null): RedisState {
  if (!answers) throw new Error('Redis gave up the question');
  for (const [error] of answers) if (error) throw error;
  const [info, epoch, time] = answers.map(([, result]) => result);
  const runId = /^run_id:(\S+)/m.exec(String(info))?.[1] ?? 'unknown';
  const [seconds, microseconds] = time as [string, string];
  return {
    runId,
    epoch: typeof epoch === 'string' ? epoch : undefined,
    redisMs: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
  };
}
