import type { Clock } from '../../domain/clock.ts';
import { MAX_RESULT_CHARS, POLLS_QUEUE } from './poll-job.ts';
import { type LoopConnection, openLoopConnection, type RedisSettings } from './redis.ts';

export type ResultListener = {
  /** Some results of a job that is still running. */
  progress(jobId: string, data: unknown): void;
  completed(jobId: string, returnvalue: unknown): void;
  failed(jobId: string, reason: string): void;
};

const RETRY_MS = 1_000;
/** Shorter than the timeout for silent connections (SILENCE_MS). */
const BLOCK_MS = 10_000;
/** Entries per read. A result may have several hundred kB. */
const READ_COUNT = 100;

/**
 * Reads the event stream of BullMQ's polls queue. Idle until `readFrom`, then reads until `close`. The position advances with each
 * entry, so neither an unreadable entry nor a failed read skips the following entries, as it would with BullMQ's QueueEvents.
 */
export class ResultStream {
  readonly #deps: { redis: RedisSettings; clock: Clock; listener: ResultListener };
  #connection: LoopConnection | undefined;
  #isReading = false;
  #wakeUp: (() => void) | undefined;

  constructor(deps: { redis: RedisSettings; clock: Clock; listener: ResultListener }) {
    this.#deps = deps;
  }

  get isReading(): boolean {
    return this.#isReading;
  }

  /**
   * Reads events from `redisMs` on (clock of Redis). Must be called again after Redis was emptied or replaced: its events may
   * be older than the last one read.
   */
  readFrom(redisMs: number): void {
    this.close();
    const connection = openLoopConnection(this.#deps.redis);
    this.#connection = connection;
    void this.#run(connection, `${redisMs}-0`);
  }

  /** Stops at once. */
  close(): void {
    this.#isReading = false;
    this.#connection?.disconnect();
    this.#connection = undefined;
    this.#wakeUp?.();
  }

  async #run(connection: LoopConnection, from: string): Promise<void> {
    const { redis } = connection;
    const key = `${this.#deps.redis.prefix}:${POLLS_QUEUE}:events`;
    const isCurrent = () => this.#connection === connection;
    let position = from;
    // The first read does not block: it verifies the permission to read.
    let isBlocking = false;
    while (isCurrent()) {
      try {
        const streams = await (isBlocking
          ? redis.xread('COUNT', READ_COUNT, 'BLOCK', BLOCK_MS, 'STREAMS', key, position)
          : redis.xread('COUNT', READ_COUNT, 'STREAMS', key, position));
        if (!isCurrent()) return;
        this.#isReading = true;
        isBlocking = true;
        for (const [id, fields] of entriesOf(streams)) {
          position = id;
          this.#notify(fields);
        }
      } catch {
        if (!isCurrent()) return;
        this.#isReading = false;
        isBlocking = false;
        await this.#pause();
      }
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(RETRY_MS, resolve);
      this.#wakeUp = () => {
        cancel();
        resolve();
      };
    });
  }

  #notify({ event, jobId, data, returnvalue, failedReason }: Record<string, string>): void {
    const { listener } = this.#deps;
    if (jobId === undefined) return;
    if (event === 'progress') listener.progress(jobId, parsed(data));
    else if (event === 'completed') listener.completed(jobId, parsed(returnvalue));
    else if (event === 'failed') listener.failed(jobId, failedReason ?? '');
  }
}

/** Returns the entries of the stream; none if the read timed out. */
function entriesOf(
  streams: [key: string, entries: [id: string, fields: string[]][]][] | null,
): [id: string, fields: Record<string, string>][] {
  return (streams?.[0]?.[1] ?? []).map(([id, fields]) => [id, fieldsOf(fields)]);
}

/** Converts the alternating names and values of an entry. */
function fieldsOf(listed: readonly string[]): Record<string, string> {
  const pairs = listed.flatMap((name, index) => (index % 2 === 0 ? [[name, listed[index + 1] ?? '']] : []));
  return Object.fromEntries(pairs);
}

/** Returns undefined if the text is not JSON, or too long. */
function parsed(text: string | undefined): unknown {
  try {
    return text === undefined || text.length > MAX_RESULT_CHARS ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
