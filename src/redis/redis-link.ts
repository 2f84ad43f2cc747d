import type { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { listWorkers, type PollJob, type PollResult } from './polls-queue.ts';

const PROBE_MS = 1_000;
/** A probe older than this is no longer valid: Redis, or this process, was suspended. */
const PROBE_VALID_MS = 5_000;

/**
 * Whether Redis works, and which workers are connected to it; probed once a second. `disconnected`
 * until a probe succeeds, then `up` until one fails or the connection closes.
 */
export class RedisLink {
  readonly #deps;
  #state: 'up' | 'disconnected' | undefined;
  #disconnectedSince: number;
  #workersLeftAt: number | null = null;
  #workers: readonly string[] = [];
  #probedAt = Number.NEGATIVE_INFINITY;
  /** The last message of Redis or of the network. */
  #detail: string | undefined;
  #cancelProbe: (() => void) | undefined;
  #isClosed = false;

  constructor(deps: {
    redis: Redis;
    queue: Queue<PollJob, PollResult>;
    clock: Clock;
    log: Log;
  }) {
    this.#deps = deps;
    this.#disconnectedSince = deps.clock.now();
    deps.redis.on('error', ({ message }) => {
      this.#detail = message;
    });
    deps.redis.on('close', () => this.#setDisconnected());
    this.#scheduleProbe();
  }

  /** The state for `GET /readyz`; `disconnectedSince` and `workersLeftAt` in epoch ms. */
  get health() {
    const isUp = this.#state === 'up';
    return {
      state: isUp ? ('up' as const) : ('disconnected' as const),
      workers: isUp ? this.#workers : [],
      disconnectedSince: isUp ? null : this.#disconnectedSince,
      workersLeftAt: this.#workersLeftAt,
    };
  }

  get isUsable(): boolean {
    const { redis, clock } = this.#deps;
    const isValid = clock.now() - this.#probedAt < PROBE_VALID_MS;
    return this.#state === 'up' && redis.status === 'ready' && isValid;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelProbe?.();
  }

  #scheduleProbe(): void {
    this.#cancelProbe = this.#deps.clock.after(PROBE_MS, async () => {
      await this.#probe();
      if (!this.#isClosed) this.#scheduleProbe();
    });
  }

  async #probe(): Promise<void> {
    const { redis, queue, clock, log } = this.#deps;
    try {
      // A full Redis, and a replica, accept reads only.
      await redis.set('bull:dawatch-probe', '1', 'PX', 10_000);
      const workers = await listWorkers(queue, redis);
      if (this.#isClosed || redis.status !== 'ready') return;
      if (this.#state !== 'up') log.info({ workers: workers.length }, 'redis.connected');
      this.#state = 'up';
      this.#detail = undefined;
      this.#probedAt = clock.now();
      this.#setWorkers(workers);
    } catch (error) {
      this.#detail ??= error instanceof Error ? error.message : String(error);
      this.#setDisconnected();
    }
  }

  #setWorkers(workers: readonly string[]): void {
    const { clock, log } = this.#deps;
    const before = this.#workers;
    this.#workers = workers;
    for (const worker of workers)
      if (!before.includes(worker)) log.info({ worker }, 'worker.joined');
    for (const worker of before) if (!workers.includes(worker)) log.info({ worker }, 'worker.left');
    if (workers.length > 0) this.#workersLeftAt = null;
    else if (before.length > 0) this.#workersLeftAt = clock.now();
  }

  #setDisconnected(): void {
    if (this.#isClosed || this.#state === 'disconnected') return;
    if (this.#state === 'up') this.#disconnectedSince = this.#deps.clock.now();
    this.#state = 'disconnected';
    const advice =
      'this server polls all submissions by itself meanwhile; dawatch doctor names the problem';
    const message = this.#detail === undefined ? undefined : escapeText(this.#detail);
    this.#deps.log.error({ message, advice }, 'redis.disconnected');
  }
}
