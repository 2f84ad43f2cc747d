import type { Redis } from 'ioredis';
import type { Clock } from '../lib/clock.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { RedisHealth } from '../operations/health-routes.ts';
import { FencingTokenStore, isIssuedBy, RedisClusterError } from './fencing-token.ts';
import { verifyPermissions } from './permissions.ts';
import { disconnect, isCredentialRefusal, openRedis, type RedisSettings } from './redis.ts';
import { NEEDED_REDIS_VERSION, readRedisInfo, SAFE_EVICTION_POLICY } from './redis-info.ts';
import type { MessageSigner } from './signer.ts';
import { type RefusedWorker, type WorkerInfo, WorkerRegistry } from './worker-registry.ts';

/**
 * `unreachable`: no connection. `no_response`: no response in time. `refused`: Redis refuses the
 * credentials, a command or a write. `cluster`: it is a cluster, which is not supported.
 */
export type DisconnectReason = 'unreachable' | 'no_response' | 'refused' | 'cluster';

export type LinkEvent =
  | { kind: 'connected'; workers: number }
  /** `detail`: the last message of Redis or of the network. */
  | { kind: 'disconnected'; reason: DisconnectReason; detail: string | null }
  /** Redis may evict keys when it is full, and with them pending jobs. */
  | { kind: 'eviction_policy'; policy: string }
  | { kind: 'too_old'; version: string; needed: string }
  /**
   * The fencing token was changed by a second server, or by a Redis that restarted with an older
   * state.
   */
  | { kind: 'fencing_token_lost' }
  | { kind: 'worker_joined' | 'worker_left'; worker: WorkerInfo }
  /** An announced worker gets no jobs. */
  | { kind: 'worker_refused'; worker: RefusedWorker };

export type NewFencingToken = {
  /** The last known time of Redis (its clock): results may have arrived since. */
  sinceMs: number;
  /**
   * Whether the previous token was issued to the same Redis process, which therefore knows all
   * active jobs.
   */
  isSameRedis: boolean;
};

const PROBE_MS = 1_000;
/** Timeout of a probe. Until then, batches may be sent to a Redis that does not respond. */
const RESPONSE_WITHIN_MS = 2_000;
/** A probe older than this is no longer valid: this process was suspended. */
const PROBE_VALID_MS = 5_000;

type RedisLinkDeps = {
  redis: RedisSettings;
  signer: MessageSigner;
  clock: Clock;
  onEvent: (event: LinkEvent) => void;
};

/**
 * The server's connection to Redis: its state, the live workers and the fencing token.
 *
 * Probes Redis once a second. `disconnected` until a probe succeeds, `up` until a probe fails or
 * the connection closes.
 */
export class RedisLink {
  readonly redis: Redis;
  readonly #deps: RedisLinkDeps;
  readonly #tokens: FencingTokenStore;
  readonly #registry: WorkerRegistry;
  #state: 'up' | 'disconnected' | undefined;
  #reason: DisconnectReason | null = 'unreachable';
  #detail: string | null = null;
  /** Whether the permissions were verified on this connection. */
  #isPermitted = false;
  #fencingToken: string | undefined;
  /** Set from the issue of a token until all listeners were called. */
  #unannounced: Pick<NewFencingToken, 'isSameRedis'> | undefined;
  #probedAt = Number.NEGATIVE_INFINITY;
  #redisMs = 0;
  #workers: readonly WorkerInfo[] = [];
  #refused: readonly RefusedWorker[] = [];
  #probing: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #isClosed = false;
  readonly #tokenListeners: ((token: NewFencingToken) => void)[] = [];

  constructor(deps: RedisLinkDeps) {
    this.#deps = deps;
    this.redis = openRedis(deps.redis);
    this.#tokens = new FencingTokenStore(this.redis, deps.redis);
    this.#registry = new WorkerRegistry(this.redis, deps.redis);
    this.redis.on('error', (error) => {
      this.#detail = error.message;
    });
    this.redis.on('ready', () => this.#scheduleProbe(0));
    this.redis.on('close', () => {
      this.#isPermitted = false;
      this.#setDisconnected('unreachable');
    });
    this.#scheduleProbe(PROBE_MS);
  }

  get health(): RedisHealth {
    const isUp = this.#state === 'up';
    const [workers, refused] = isUp ? [this.#workers, this.#refused] : [[], []];
    return {
      state: isUp ? 'up' : 'disconnected',
      reason: isUp ? null : this.#reason,
      workers,
      refusedWorkers: refused.length,
    };
  }

  /**
   * Undefined while Redis is not usable. `redisNow`: the clock of Redis in epoch milliseconds, or
   * slightly less.
   */
  get usable() {
    const sinceMs = this.#deps.clock.now() - this.#probedAt;
    const isKnown =
      this.#state === 'up' && this.redis.status === 'ready' && sinceMs < PROBE_VALID_MS;
    if (!isKnown || this.#unannounced || this.#fencingToken === undefined) return undefined;
    return {
      fencingToken: this.#fencingToken,
      workers: this.#workers,
      redisNow: this.#redisMs + sinceMs,
    };
  }

  /**
   * Calls `listener` after every new fencing token, before it is used, and again if a listener
   * throws.
   */
  onFencingToken(listener: (token: NewFencingToken) => void): void {
    this.#tokenListeners.push(listener);
  }

  /** Closes at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    disconnect(this.redis);
    await this.#probing;
  }

  #scheduleProbe(delayMs: number): void {
    this.#cancelTimer?.();
    if (this.#isClosed) return;
    this.#cancelTimer = this.#deps.clock.after(delayMs, () => {
      this.#probing ??= this.#probe().finally(() => {
        this.#probing = undefined;
        this.#scheduleProbe(PROBE_MS);
      });
    });
  }

  async #probe(): Promise<void> {
    if (this.redis.status !== 'ready') return this.#setDisconnected('unreachable');
    let failure: unknown;
    const probed = this.#runProbe().catch((error: unknown) => {
      failure = error;
    });
    const ended = await withTimeout(RESPONSE_WITHIN_MS, probed);
    if (this.#isClosed || (ended === 'done' && failure === undefined)) return;
    if (failure instanceof Error) this.#detail = failure.message;
    if (this.redis.status !== 'ready') this.#setDisconnected('unreachable');
    else if (failure instanceof RedisClusterError) this.#setDisconnected('cluster');
    else this.#setDisconnected(ended === 'late' ? 'no_response' : 'refused');
  }

  async #runProbe(): Promise<void> {
    if (!this.#isPermitted) await verifyPermissions(this.redis, this.#deps.redis.prefix, 'server');
    this.#isPermitted = true;
    const { runId, fencingToken: found, redisMs } = await this.#tokens.probe();
    const probedAt = this.#deps.clock.now();
    const isOurs = found !== undefined && found === this.#fencingToken && isIssuedBy(found, runId);
    if (!isOurs) await this.#issueToken(runId, found);
    const { workers, refused } = await this.#registry.list(this.#deps.signer);
    if (this.#isClosed || this.redis.status !== 'ready') return;
    // After a failover the clock of the new Redis may be behind.
    const sinceMs = this.#redisMs === 0 ? redisMs : Math.min(this.#redisMs, redisMs);
    if (this.#unannounced) {
      for (const listener of this.#tokenListeners) listener({ sinceMs, ...this.#unannounced });
      this.#unannounced = undefined;
    }
    this.#reportWorkers(workers, refused);
    this.#workers = workers;
    this.#refused = refused;
    this.#probedAt = probedAt;
    this.#redisMs = redisMs;
    if (this.#state !== 'up') this.#deps.onEvent({ kind: 'connected', workers: workers.length });
    this.#state = 'up';
    this.#detail = null;
  }

  /** Redis is unknown, or was restarted, emptied or replaced: invalidates all previous jobs. */
  async #issueToken(runId: string, found: string | undefined): Promise<void> {
    const isSameRedis = this.#fencingToken !== undefined && isIssuedBy(this.#fencingToken, runId);
    if (isSameRedis && found !== undefined) this.#deps.onEvent({ kind: 'fencing_token_lost' });
    this.#fencingToken = undefined;
    // The previous token is that before all attempts which the listeners do not know.
    const isPreviousSame = found !== undefined && isIssuedBy(found, runId);
    this.#unannounced = { isSameRedis: isPreviousSame && this.#unannounced?.isSameRedis !== false };
    const token = await this.#tokens.issue(runId, this.#deps.signer);
    if (!isSameRedis) await this.#inspect();
    this.#fencingToken = token;
  }

  async #inspect(): Promise<void> {
    const { version, isTooOld, evictionPolicy } = readRedisInfo(await this.redis.info());
    if (evictionPolicy !== null && evictionPolicy !== SAFE_EVICTION_POLICY)
      this.#deps.onEvent({ kind: 'eviction_policy', policy: evictionPolicy });
    if (version !== null && isTooOld)
      this.#deps.onEvent({ kind: 'too_old', version, needed: NEEDED_REDIS_VERSION });
  }

  #reportWorkers(workers: readonly WorkerInfo[], refused: readonly RefusedWorker[]): void {
    for (const worker of refused) {
      const isKnown = this.#refused.some(
        ({ name, reason }) => name === worker.name && reason === worker.reason,
      );
      if (!isKnown) this.#deps.onEvent({ kind: 'worker_refused', worker });
    }
    const known = new Set(this.#workers.map(({ name }) => name));
    const seen = new Set(workers.map(({ name }) => name));
    for (const worker of workers)
      if (!known.has(worker.name)) this.#deps.onEvent({ kind: 'worker_joined', worker });
    for (const worker of this.#workers)
      if (!seen.has(worker.name)) this.#deps.onEvent({ kind: 'worker_left', worker });
  }

  #setDisconnected(found: DisconnectReason): void {
    if (this.#isClosed) return;
    // Redis closes the connection after a wrong password.
    const isRefusal = found === 'unreachable' && isCredentialRefusal(this.#detail ?? '');
    const reason = isRefusal ? 'refused' : found;
    const isChange = this.#state !== 'disconnected' || this.#reason !== reason;
    this.#state = 'disconnected';
    this.#reason = reason;
    if (isChange) this.#deps.onEvent({ kind: 'disconnected', reason, detail: this.#detail });
  }
}
