import { Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { UNAVAILABLE_REASONS } from '../submissions/classify.ts';
import { POLLS_QUEUE, probe } from './connections.ts';

export const MAX_IDS_PER_JOB = 50;

/** Contains no secrets: a worker has its own API key for the upstream. */
export type PollJob = {
  upstream: string;
  submission_ids: string[];
  /** When its share of the request budget is released, epoch ms by the clock of Redis. */
  expires_at: number;
  /** The process of Redis that the job was added to; see readServer. */
  run_id: string;
};

const text = z.string().max(1_000_000);
const common = { submissionId: text, durationMs: z.int().min(0) };

/** What the upstream answered about one submission. The server sets the time by its own clock. */
const observationSchema = z.discriminatedUnion('kind', [
  z.object({
    ...common,
    kind: z.enum(['pending', 'finalized']),
    state: text,
    error: text.nullable(),
    envelope: text,
    blockNumber: z.number().nullable(),
  }),
  z.object({ ...common, kind: z.literal('error'), state: text, error: text, envelope: text }),
  z.object({ ...common, kind: z.literal('not_found'), error: text, ambiguous: z.boolean() }),
  z.object({ ...common, kind: z.literal('rejected'), error: text }),
  z.object({ ...common, kind: z.literal('unauthorized'), error: text }),
  z.object({
    ...common,
    kind: z.literal('throttled'),
    error: text,
    retryAfterMs: z.number().nullable(),
  }),
  z.object({
    ...common,
    kind: z.literal('unavailable'),
    reason: z.enum(UNAVAILABLE_REASONS),
    error: text,
    retryAfterMs: z.number().nullable(),
  }),
]);

export const pollResultSchema = z.object({
  worker: z.string().max(300),
  observations: z.array(observationSchema).max(MAX_IDS_PER_JOB),
});
export type PollResult = z.input<typeof pollResultSchema>;

/** Maximum length of the event stream, which contains the results and is in the memory of Redis. */
const MAX_EVENTS = 2_000;

export function openPollsQueue(redis: Redis): Queue<PollJob, PollResult> {
  const queue = new Queue<PollJob, PollResult>(POLLS_QUEUE, {
    connection: redis,
    streams: { events: { maxLen: MAX_EVENTS } },
    // With the version check, a queue whose Redis disconnects during the check never works again.
    skipVersionCheck: true,
  });
  queue.on('error', () => undefined);
  return queue;
}

/** Redis lists the clients of all its databases. */
export async function listWorkers(
  queue: Queue<PollJob, PollResult>,
  { options: { db = 0 } }: Redis,
): Promise<string[]> {
  const clients = await queue.getWorkers();
  const names = clients
    .filter((client) => client.db === String(db))
    .map(({ rawname = '' }) => rawname.slice(rawname.lastIndexOf(':') + 1));
  return [...new Set(names)].sort();
}

export const PROBE_MS = 1_000;
/** A probe older than this is no longer valid: Redis, or this process, was suspended. */
const PROBE_VALID_MS = 5_000;

/** Probed once a second. `disconnected` until a probe succeeds, then `up` until one fails. */
export class RedisLink {
  readonly #deps;
  #state: 'up' | 'disconnected' | undefined;
  #disconnectedSince: number;
  #workersLeftAt: number | null = null;
  #workers: readonly string[] = [];
  #paused: readonly string[] = [];
  #probedAt = Number.NEGATIVE_INFINITY;
  /** The first message of Redis or of the network since Redis worked. */
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
      this.#detail ??= message;
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
      paused: isUp ? this.#paused : [],
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
      const paused = await probe(redis);
      const workers = await listWorkers(queue, redis);
      if (this.#isClosed || redis.status !== 'ready') return;
      if (this.#state !== 'up') log.info({ workers: workers.length }, 'redis.connected');
      this.#state = 'up';
      this.#detail = undefined;
      this.#probedAt = clock.now();
      this.#paused = paused;
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
