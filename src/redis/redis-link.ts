import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { RedisHealth } from '../operations/health-routes.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { FencingTokenStore, isIssuedBy, RedisClusterError } from './fencing-token.ts';
import { type MessageSigner, pollJobSchema } from './messages.ts';
import { disconnect, isCredentialRefusal, openRedis, type RedisSettings } from './redis.ts';
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
  /** Since when it is not `up`, epoch ms. */
  #disconnectedSince: number;
  /** When the last worker left, epoch ms; null: there is one, or there has been none. */
  #workersLeftAt: number | null = null;
  #detail: string | null = null;
  #fencingToken: string | undefined;
  /** Set from the issue of a token until all listeners were called. */
  #unannounced: { isSameRedis: boolean } | undefined;
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
    this.#disconnectedSince = deps.clock.now();
    this.redis = openRedis(deps.redis);
    this.#tokens = new FencingTokenStore(this.redis, deps.redis);
    this.#registry = new WorkerRegistry(this.redis, deps.redis);
    this.redis.on('error', (error) => {
      this.#detail = error.message;
    });
    this.redis.on('ready', () => this.#scheduleProbe(0));
    this.redis.on('close', () => this.#setDisconnected('unreachable'));
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
      disconnectedSince: isUp ? null : this.#disconnectedSince,
      workersLeftAt: this.#workersLeftAt,
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
    if (workers.length > 0) this.#workersLeftAt = null;
    else if (this.#workers.length > 0) this.#workersLeftAt = probedAt;
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
    this.#fencingToken = token;
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
    if (this.#state === 'up') this.#disconnectedSince = this.#deps.clock.now();
    this.#state = 'disconnected';
    this.#reason = reason;
    if (isChange) this.#deps.onEvent({ kind: 'disconnected', reason, detail: this.#detail });
  }
}

const CHECK_MS = 100;
/** Maximum time between a worker's check of the fencing token and its requests. */
const START_MS = 500;

/**
 * Resolves once no worker can be polling for the previous process of this server: those polls are
 * not in the request budget of this process. With Redis this is the case after a new fencing token,
 * when no older job is active. A Redis that was emptied, restarted or replaced may not know the
 * active jobs; then the longest request has to end. Without Redis all leases have to expire.
 */
export function untilPreviousPollsEnded(deps: {
  queue: Queue;
  link: RedisLink;
  clock: Clock;
  /** Remaining time of the longest lease of the previous process; 0: there is none. */
  leasesLastMs: number;
  /** The longest request timeout. */
  timeoutMs: number;
  /** Resolves the promise at once. */
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
    link.onFencingToken(async ({ isSameRedis }) => {
      const until = clock.now() + timeoutMs + START_MS;
      while (
        !isOver &&
        clock.now() < until &&
        (!isSameRedis || (await hasPreviousJobs(queue, link)))
      )
        await new Promise<void>((next) => clock.after(CHECK_MS, next));
      // If Redis is disconnected again, the next fencing token starts a new wait, or the leases
      // expire.
      if (!isOver && link.usable) end();
    });
  });
}

/** Whether a job of the previous process is active and has not expired. */
async function hasPreviousJobs(queue: Queue, link: RedisLink): Promise<boolean> {
  try {
    const active = await queue.getJobs(['active']);
    return active.some((job) => {
      const parsed = pollJobSchema.safeParse(job?.data);
      const now = link.usable?.redisNow ?? Number.NEGATIVE_INFINITY;
      return (
        parsed.success &&
        parsed.data.fencing_token !== link.usable?.fencingToken &&
        parsed.data.expires_at > now
      );
    });
  } catch {
    return true;
  }
}

/** Instructions for each problem of Redis. */
const DISCONNECTED = {
  unreachable: 'verify that Redis runs and that redis.url is right',
  no_response: 'verify that Redis runs and that redis.url is right',
  refused:
    'verify the user, its password and its permissions (docs/queues.md), and that Redis accepts writes',
  cluster: 'use a single Redis, or a primary with replicas and Sentinels',
} as const satisfies Record<DisconnectReason, string>;

/** Why an announced worker gets no jobs, and how to resolve it. */
const REFUSED_WORKER = {
  other_format: {
    reason: 'its announcement has another format: it runs another version, or is not a worker',
    advice: 'run the worker with the version of this server; until then this server polls instead',
  },
  unsigned: {
    reason: 'its announcement is unsigned, and this server has a redis.secret',
    advice: 'set the same redis.secret on the worker; until then this server polls instead',
  },
  no_secret: {
    reason: 'its announcement is signed, and this server has no redis.secret',
    advice:
      'set the same redis.secret on this server, or none on the worker; until then this server polls instead',
  },
  other_secret: {
    reason: 'its announcement is signed with another redis.secret',
    advice: 'set the same redis.secret on the worker; until then this server polls instead',
  },
} as const satisfies Record<RefusedWorker['reason'], { reason: string; advice: string }>;

/** Returns a listener that logs the state of Redis and of workers, as seen by the server. */
export function logRedis(log: Log): (event: LinkEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'connected':
        return log.info({ workers: event.workers }, 'redis.connected');
      case 'disconnected': {
        const message = event.detail === null ? undefined : escapeText(event.detail);
        const advice = `this server polls all submissions by itself meanwhile; ${DISCONNECTED[event.reason]}`;
        return log.error({ reason: event.reason, message, advice }, 'redis.disconnected');
      }
      case 'fencing_token_lost':
        return log.warn(
          { advice: 'if several servers use this Redis, set a different redis.prefix for each' },
          'redis.fencing_token_lost',
        );
      case 'worker_joined':
      case 'worker_left': {
        const { name, version } = event.worker;
        return log.info(
          { worker: name, version },
          event.kind === 'worker_joined' ? 'worker.joined' : 'worker.left',
        );
      }
      case 'worker_refused':
        return log.error(
          { worker: event.worker.name, ...REFUSED_WORKER[event.worker.reason] },
          'worker.refused',
        );
      default:
        return event satisfies never;
    }
  };
}
