import { QueueEvents } from 'bullmq';
import type { Clock } from '../monitor/ports.ts';
import { POLLS_QUEUE } from './poll-job.ts';
import { type LoopConnection, openLoopConnection, type RedisSettings, within } from './redis.ts';

export type AnswerListener = {
  /** Some answers of a job that goes on, as its worker sent them. */
  progress(jobId: string, data: unknown): void;
  completed(jobId: string, returnvalue: unknown): void;
  failed(jobId: string, reason: string): void;
};

type Reader = { events: QueueEvents; connection: LoopConnection };

const RETRY_MS = 1_000;
const CLOSE_WITHIN_MS = 1_000;

/** What becomes of the jobs on the polls queue, as BullMQ's events tell it. Idle until it is told from when on. */
export class AnswerStream {
  readonly #redis: RedisSettings;
  readonly #clock: Clock;
  readonly #listener: AnswerListener;
  #reader: Reader | undefined;
  #isReading = false;
  #cancelRetry: (() => void) | undefined;

  constructor(deps: { redis: RedisSettings; clock: Clock; listener: AnswerListener }) {
    this.#redis = deps.redis;
    this.#clock = deps.clock;
    this.#listener = deps.listener;
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /**
   * Reads what is told from `redisMs` on, on the clock of Redis. To be called again for a Redis that was emptied or replaced:
   * what it tells may be older than what was read last, and would never be seen.
   */
  readFrom(redisMs: number): void {
    void this.close();
    const connection = openLoopConnection(this.#redis.url);
    const events = new QueueEvents(POLLS_QUEUE, {
      prefix: this.#redis.prefix,
      connection: connection.redis,
      // With it, Redis going away while it runs would leave a stream that is never read again.
      skipVersionCheck: true,
      autorun: false,
      lastEventId: `${redisMs}-0`,
    });
    const reader = { events, connection };
    this.#reader = reader;
    const { progress, completed, failed } = this.#listener;
    events.on('error', () => undefined);
    events.on('progress', ({ jobId, data }) => progress(jobId, data));
    events.on('completed', ({ jobId, returnvalue }) => completed(jobId, returnvalue));
    events.on('failed', ({ jobId, failedReason }) => failed(jobId, failedReason));
    void this.#run(reader, redisMs);
  }

  /** Ends within a second. */
  async close(): Promise<void> {
    this.#cancelRetry?.();
    this.#isReading = false;
    const reader = this.#reader;
    this.#reader = undefined;
    if (!reader) return;
    await within(CLOSE_WITHIN_MS, reader.events.close());
    reader.connection.disconnect();
  }

  /** An event that can't be read ends BullMQ's loop: it is begun again behind it. */
  async #run(reader: Reader, redisMs: number): Promise<void> {
    const startedAt = this.#clock.now();
    try {
      await reader.events.waitUntilReady();
      if (this.#reader !== reader) return;
      this.#isReading = true;
      await reader.events.run();
    } catch {}
    if (this.#reader !== reader) return;
    this.#isReading = false;
    const ranMs = this.#clock.now() - startedAt;
    this.#cancelRetry = this.#clock.after(RETRY_MS, () => this.readFrom(redisMs + ranMs));
  }
}
