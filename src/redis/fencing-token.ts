import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { MessageSigner, SignatureProblem } from './messages.ts';
import { isCluster } from './redis.ts';

/** The state of Redis at one moment. */
export type RedisState = ReturnType<typeof stateOf>;

/**
 * Reads and writes the fencing token in Redis. Every start of the server sets a new one, and
 * workers poll only jobs with the current one. The token contains the run id of the Redis process
 * it was written to: after a failover a Redis may contain an older state with jobs that were
 * already polled, and workers refuse these because the run id differs.
 */
export class FencingTokenStore {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #probeKey: string;

  constructor(redis: Redis, { prefix }: { prefix: string }) {
    this.#redis = redis;
    this.#key = `${prefix}:dawatch-workers:fencing-token`;
    this.#probeKey = `${prefix}:dawatch-workers:probe`;
  }

  /**
   * Uses one connection, so that all values belong to the same Redis. Throws a RedisClusterError,
   * or the errors of Redis.
   */
  async read(): Promise<RedisState> {
    return stateOf(await this.#pipeline().exec());
  }

  /**
   * Like `read`, and verifies that Redis accepts writes: a full Redis or a replica accepts reads
   * only.
   */
  async probe(): Promise<RedisState> {
    return stateOf(await this.#pipeline().set(this.#probeKey, '1', 'PX', 10_000).exec());
  }

  #pipeline() {
    return this.#redis.pipeline().info('server').get(this.#key).time();
  }

  /** Sets a new token. It is signed if there is a secret, so that workers can verify theirs. */
  async issue(runId: string, signer: MessageSigner): Promise<string> {
    const id = randomUUID();
    const signature = signer.sign('server', [runId, id]);
    const token = [runId, id, ...(signature === undefined ? [] : [signature])].join('/');
    await this.#redis.set(this.#key, token);
    return token;
  }
}

/** Returns why the server which issued the token does not have the secret of `signer`. */
export function problemOfToken(token: string, signer: MessageSigner): SignatureProblem | undefined {
  const [runId, id, signature] = token.split('/');
  return signer.problemOf('server', [runId, id], signature);
}

/** The random part of a token, which is part of job ids. */
export function tokenIdOf(token: string): string {
  return token.split('/')[1] ?? '';
}

/** Whether the token was written to the Redis process with this run id. */
export function isIssuedBy(token: string, runId: string): boolean {
  return token.startsWith(`${runId}/`);
}

/** Redis is a cluster, whose nodes each have a run id and a clock of their own. */
export class RedisClusterError extends Error {
  override readonly name = 'RedisClusterError';
  constructor() {
    super('this Redis is a cluster, which dawatch does not support');
  }
}

function stateOf(replies: [error: Error | null, result: unknown][] | null) {
  if (!replies) throw new Error('Redis aborted the pipeline');
  // Checked before the errors, because a node of a cluster refuses keys of other nodes with an
  // error.
  if (isCluster(String(replies[0]?.[1]))) throw new RedisClusterError();
  for (const [error] of replies) if (error) throw error;
  const [info, token, time] = replies.map(([, result]) => result);
  const runId = /^run_id:(\S+)/m.exec(String(info))?.[1] ?? 'unknown';
  const [seconds, microseconds] = time as [string, string];
  return {
    /** Identifies the Redis process: changes with a restart or a failover. */
    runId,
    fencingToken: typeof token === 'string' ? token : undefined,
    /** The clock of Redis in epoch milliseconds, between the request and the response. */
    redisMs: Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000),
  };
}
