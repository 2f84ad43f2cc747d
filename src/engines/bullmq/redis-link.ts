import type { Redis } from 'ioredis';
import type { Clock } from '../../domain/clock.ts';
import { FencingTokenStore, isIssuedBy } from './fencing-token.ts';
import { disconnect, isCredentialRefusal, openRedis, type RedisSettings, withTimeout } from './redis.ts';
import { NEEDED_REDIS_VERSION, readRedisInfo, SAFE_EVICTION_POLICY } from './redis-info.ts';
import type { Signer } from './signer.ts';
import { type RefusedWorker, type WorkerInfo, WorkerRegistry } from './worker-registry.ts';

/** `unreachable`: no connection. `not_answering`: no answer in time. `refused`: it says no, to the password or a write. */
export type DisconnectReason = 'unreachable' | 'not_answering' | 'refused';

export type LinkEvent =
  | { kind: 'up'; workers: number }
  /** `detail`: what Redis or the network said last. */
  | { kind: 'away'; reason: DisconnectReason; detail: string | null }
  /** Redis may drop keys when it is full, and with them jobs that nobody has done. */
  | { kind: 'eviction_policy'; policy: string }
  | { kind: 'too_old'; version: string; needed: string }
  /** Somebody else set the epoch: a second server, or a Redis that came back with an older state. */
  | { kind: 'epoch_lost' }
  | { kind: 'worker_seen' | 'worker_gone'; worker: WorkerInfo }
  /** A worker announces itself that gets no jobs. */
  | { kind: 'worker_refused'; worker: RefusedWorker };

export type RedisHealth = {
  state: 'up' | 'away';
  reason: DisconnectReason | null;
  workers: readonly WorkerInfo[];
  /** How many workers announce themselves and get no jobs. */
  refusedWorkers: number;
};

export type NewFencingToken = {
  /** Since when nothing was heard of Redis, on its clock: answers to what was handed out before may have come meanwhile. */
  sinceMs: number;
  /** Whether Redis still is the one of the epoch before, so that it knows of everything that is under way. */
  goesOn: boolean;
};

/** What a server that may use Redis now needs for it. */
type Usable = {
  epoch: string;
  workers: readonly WorkerInfo[];
  /** The clock of Redis, or a little less: it was read a moment ago. */
  redisNow: number;
};

const LOOK_MS = 1_000;
/** An answer that takes longer is none; until then batches may be sent to nobody, and wait for the end of their lease. */
const ANSWER_WITHIN_MS = 2_000;
/** Older than that, a look tells nothing of now: this process stood still itself. */
const LOOK_LASTS_MS = 5_000;

/**
 * The server's connection to Redis, and what it knows of it: whether it works, which workers are there, and the epoch.
 *
 * Away until a look, once a second, is answered; away again with the first that is not, or when the connection ends.
 */
export class RedisLink {
  readonly redis: Redis;
  readonly #clock: Clock;
  readonly #onEvent: (event: LinkEvent) => void;
  readonly #signer: Signer;
  readonly #epochs: FencingTokenStore;
  readonly #register: WorkerRegistry;
  #state: 'up' | 'away' | undefined;
  #reason: DisconnectReason | null = 'unreachable';
  #detail: string | null = null;
  #epoch: string | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #redisMs = 0;
  #workers: readonly WorkerInfo[] = [];
  #refused: readonly RefusedWorker[] = [];
  #looking: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  #isClosed = false;
  readonly #epochListeners: ((begun: NewFencingToken) => void)[] = [];

  constructor(deps: { redis: RedisSettings; signer: Signer; clock: Clock; onEvent: (event: LinkEvent) => void }) {
    this.#clock = deps.clock;
    this.#onEvent = deps.onEvent;
    this.#signer = deps.signer;
    this.redis = openRedis(deps.redis.url);
    this.#epochs = new FencingTokenStore(this.redis, deps.redis);
    this.#register = new WorkerRegistry(this.redis, deps.redis);
    this.redis.on('error', (error) => {
      this.#detail = error.message;
    });
    this.redis.on('ready', () => this.#lookSoon(0));
    this.redis.on('close', () => this.#away('unreachable'));
    this.#lookSoon(LOOK_MS);
  }

  get health(): RedisHealth {
    const isUp = this.#state === 'up';
    const [workers, refused] = isUp ? [this.#workers, this.#refused] : [[], []];
    return {
      state: isUp ? 'up' : 'away',
      reason: isUp ? null : this.#reason,
      workers,
      refusedWorkers: refused.length,
    };
  }

  /** Undefined while Redis is away. */
  get usable(): Usable | undefined {
    const sinceMs = this.#clock.now() - this.#lookedAt;
    const isKnown = this.#state === 'up' && this.redis.status === 'ready' && sinceMs < LOOK_LASTS_MS;
    if (!isKnown || this.#epoch === undefined) return undefined;
    return { epoch: this.#epoch, workers: this.#workers, redisNow: this.#redisMs + sinceMs };
  }

  /** Calls `listener` after every new epoch. */
  onFencingToken(listener: (begun: NewFencingToken) => void): void {
    this.#epochListeners.push(listener);
  }

  /** Ends at once. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer?.();
    disconnect(this.redis);
    await this.#looking;
  }

  #lookSoon(delayMs: number): void {
    this.#cancelTimer?.();
    if (this.#isClosed) return;
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = undefined;
        this.#lookSoon(LOOK_MS);
      });
    });
  }

  async #look(): Promise<void> {
    if (this.redis.status !== 'ready') return this.#away('unreachable');
    let failure: unknown;
    const looked = this.#lookAround().catch((error: unknown) => {
      failure = error;
    });
    const came = await withTimeout(ANSWER_WITHIN_MS, looked);
    if (this.#isClosed || (came === 'done' && failure === undefined)) return;
    if (failure instanceof Error) this.#detail = failure.message;
    if (this.redis.status !== 'ready') this.#away('unreachable');
    else this.#away(came === 'late' ? 'not_answering' : 'refused');
  }

  async #lookAround(): Promise<void> {
    const { runId, epoch, redisMs } = await this.#epochs.probe();
    const lookedAt = this.#clock.now();
    const isOurs = epoch !== undefined && epoch === this.#epoch && isIssuedBy(epoch, runId);
    if (!isOurs) await this.#begin(runId, epoch);
    const { workers, refused } = await this.#register.list(this.#signer);
    if (this.#isClosed || this.redis.status !== 'ready') return;
    this.#tellWorkers(workers, refused);
    this.#workers = workers;
    this.#refused = refused;
    // The clock of another Redis may be behind.
    const sinceMs = this.#redisMs === 0 ? redisMs : Math.min(this.#redisMs, redisMs);
    this.#lookedAt = lookedAt;
    this.#redisMs = redisMs;
    if (this.#state !== 'up') this.#onEvent({ kind: 'up', workers: workers.length });
    this.#state = 'up';
    this.#detail = null;
    if (!isOurs) {
      const begun = { sinceMs, goesOn: epoch !== undefined && isIssuedBy(epoch, runId) };
      for (const listener of this.#epochListeners) listener(begun);
    }
  }

  /** Redis is new to us, was restarted, emptied or replaced: what was handed out before counts no more. */
  async #begin(runId: string, found: string | undefined): Promise<void> {
    const isSameRedis = this.#epoch !== undefined && isIssuedBy(this.#epoch, runId);
    if (isSameRedis && found !== undefined) this.#onEvent({ kind: 'epoch_lost' });
    this.#epoch = undefined;
    const epoch = await this.#epochs.begin(runId, this.#signer);
    if (!isSameRedis) await this.#inspect();
    this.#epoch = epoch;
  }

  async #inspect(): Promise<void> {
    const { version, isTooOld, evictionPolicy } = readRedisInfo(await this.redis.info());
    if (evictionPolicy !== null && evictionPolicy !== SAFE_EVICTION_POLICY)
      this.#onEvent({ kind: 'eviction_policy', policy: evictionPolicy });
    if (version !== null && isTooOld) this.#onEvent({ kind: 'too_old', version, needed: NEEDED_REDIS_VERSION });
  }

  #tellWorkers(workers: readonly WorkerInfo[], refused: readonly RefusedWorker[]): void {
    for (const worker of refused) {
      const isKnown = this.#refused.some(({ name, reason }) => name === worker.name && reason === worker.reason);
      if (!isKnown) this.#onEvent({ kind: 'worker_refused', worker });
    }
    const known = new Set(this.#workers.map(({ name }) => name));
    const seen = new Set(workers.map(({ name }) => name));
    for (const worker of workers) if (!known.has(worker.name)) this.#onEvent({ kind: 'worker_seen', worker });
    for (const worker of this.#workers) if (!seen.has(worker.name)) this.#onEvent({ kind: 'worker_gone', worker });
  }

  #away(found: DisconnectReason): void {
    if (this.#isClosed) return;
    // With a wrong password it ends the connection itself.
    const isRefusal = found === 'unreachable' && isCredentialRefusal(this.#detail ?? '');
    const reason = isRefusal ? 'refused' : found;
    const isNews = this.#state !== 'away' || this.#reason !== reason;
    this.#state = 'away';
    this.#reason = reason;
    if (isNews) this.#onEvent({ kind: 'away', reason, detail: this.#detail });
  }
}
