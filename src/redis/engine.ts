import { Queue } from 'bullmq';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { Observation } from '../submissions/classify.ts';
import type { PollBatch, PollEngine } from '../submissions/ports.ts';
import { tokenIdOf } from './fencing-token.ts';
import {
  MAX_IDS_PER_JOB,
  MAX_RESULT_CHARS,
  type MessageSigner,
  type NotPolled,
  POLLS_QUEUE,
  type PollJob,
  type PollResult,
  pollResultSchema,
  START_MARGIN_MS,
  signedJob,
  signedResult,
} from './messages.ts';
import { type LoopConnection, openLoopConnection, type RedisSettings } from './redis.ts';
import type { RedisLink } from './redis-link.ts';

export type InFlightJob = ReturnType<typeof createInFlightJob>;

/**
 * A job that was sent to the workers. Open until `end` is called or its lease expires; later
 * results are ignored, because its ids may be in another job by then.
 */
function createInFlightJob(deps: {
  upstream: string;
  fencingToken: string;
  submissionIds: readonly string[];
  report: (observation: Observation) => void;
  clock: Clock;
  sentAt: number;
  endsAt: number;
  onExpired: () => void;
}) {
  const { upstream, fencingToken, submissionIds, report, clock, sentAt, endsAt, onExpired } = deps;
  const ids = new Set(submissionIds);
  const remaining = new Set(submissionIds);
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const cancelLease = clock.after(endsAt - clock.now(), () => {
    resolve();
    onExpired();
  });

  return {
    ...{ upstream, fencingToken, sentAt, report, ended },
    /** Ends the job. Idempotent. */
    end(): void {
      cancelLease();
      resolve();
    },
    /**
     * Reports the answers, each id once. Reports none if an id is not in this job:
     * then the result does not come from a worker that processed it. `at` is this server's time.
     */
    accept({ polled, worker }: PollResult): 'accepted' | 'foreign_id' {
      if (polled.some(({ submission_id }) => !ids.has(submission_id))) return 'foreign_id';
      const at = clock.now();
      if (at >= endsAt) return 'accepted';
      for (const { submission_id: submissionId, duration_ms: durationMs, answer } of polled)
        if (remaining.delete(submissionId))
          report({
            submissionId,
            at,
            durationMs,
            ...(worker !== undefined && { worker }),
            ...answer,
          });
      return 'accepted';
    },
    /**
     * Removes and returns the ids without a response if requests of `neededMs` would end before the
     * lease; else none.
     */
    reclaim(neededMs: number): string[] {
      if (clock.now() + neededMs >= endsAt) return [];
      const open = [...remaining];
      remaining.clear();
      return open;
    },
  };
}

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
 * Reads the event stream of BullMQ's polls queue. Idle until `readFrom`, then reads until `close`.
 * The position advances with each entry, so neither an unreadable entry nor a failed read skips the
 * following entries, as it would with BullMQ's QueueEvents.
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
   * Reads events from `redisMs` on (clock of Redis). Must be called again after Redis was emptied
   * or replaced: its events may be older than the last one read.
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
  const pairs = listed.flatMap((name, index) =>
    index % 2 === 0 ? [[name, listed[index + 1] ?? '']] : [],
  );
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

/**
 * Why a result is rejected. `malformed`: it does not match the format; `signature`: missing, or of
 * another secret or job; `foreign_id`: it contains an id that is not in the job.
 */
export const REJECTIONS = ['malformed', 'signature', 'foreign_id'] as const;
type Rejection = (typeof REJECTIONS)[number];

export type EngineEvent =
  /** A worker returned a job without polling; this server polls its submissions. */
  | { kind: 'returned'; reason: NotPolled; upstream: string; submissions: number }
  /** A job has no usable result; its submissions are polled again after the lease. */
  | { kind: 'job_failed'; upstream: string; reason: string }
  | { kind: 'rejected'; upstream: string; jobId: string; reason: Rejection };

type EngineDeps = {
  redis: RedisSettings;
  link: RedisLink;
  signer: MessageSigner;
  /** Polls from this process if no worker can. */
  local: PollEngine;
  clock: Clock;
  leaseMsOf: (upstream: string) => number;
  timeoutMsOf: (upstream: string) => number;
  onEvent: (event: EngineEvent) => void;
};

/** A job expires this much before the scheduler's lease. */
const LEASE_MARGIN_MS = 100;
/**
 * After a job without any result, this process polls by itself for this long: workers are
 * registered but do not respond.
 */
const FALLBACK_MS = 30_000;
const CLOSE_WITHIN_MS = 1_000;
/** Maximum length of the event stream, which Redis keeps in memory. */
const MAX_EVENTS = 2_000;
/** Finished jobs are kept for inspection only. */
const RETENTION = {
  removeOnComplete: { age: 600, count: 100 },
  removeOnFail: { age: 86_400, count: 1_000 },
};

/**
 * Distributes polls to workers through BullMQ. A batch is split into jobs; results arrive as queue
 * events, some while a job is running. Without Redis or without workers this process polls by
 * itself. It also polls the submissions of a returned job, which were certainly not polled. After
 * any other failure that is unknown, so their share of the request budget stays occupied until the
 * lease expires.
 */
export class BullmqEngine implements PollEngine {
  readonly queue: Queue<PollJob>;
  readonly #deps: EngineDeps;
  readonly #jobs = new Map<string, InFlightJob>();
  readonly #results: ResultStream;
  #lastResultAt = Number.NEGATIVE_INFINITY;
  #fallbackUntil = Number.NEGATIVE_INFINITY;
  #jobCount = 0;
  #isClosed = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    const { redis, clock, link } = deps;
    this.queue = new Queue(POLLS_QUEUE, {
      prefix: redis.prefix,
      connection: link.redis,
      streams: { events: { maxLen: MAX_EVENTS } },
      // With the version check, a queue whose Redis disconnects during the check never works again.
      skipVersionCheck: true,
    });
    this.queue.on('error', () => undefined);
    const listener = {
      progress: (jobId: string, data: unknown) => void this.#accept(jobId, data),
      completed: (jobId: string, returnvalue: unknown) => this.#complete(jobId, returnvalue),
      failed: (jobId: string, reason: string) => this.#fail(jobId, reason),
    };
    this.#results = new ResultStream({ redis, clock, listener });
    link.onFencingToken(({ sinceMs }) => {
      // A probe may end while the engine closes.
      if (this.#isClosed) return;
      this.#results.readFrom(sinceMs);
      // Jobs that failed with the previous Redis do not count against the workers.
      this.#lastResultAt = clock.now();
      this.#fallbackUntil = Number.NEGATIVE_INFINITY;
      // Workers refuse jobs with an older fencing token.
      void this.queue.drain().catch(() => undefined);
    });
  }

  /** Whether results of workers are received. */
  get isReading(): boolean {
    return this.#results.isReading;
  }

  async poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void> {
    const { local, clock, signer, leaseMsOf, timeoutMsOf } = this.#deps;
    const { upstream, submissionIds } = batch;
    if (submissionIds.length === 0) return;
    const usable = this.#usable();
    if (!usable) return local.poll(batch, report);
    const leaseMs = leaseMsOf(upstream) - LEASE_MARGIN_MS;
    const sentAt = clock.now();
    const [endsAt, expiresAt] = [sentAt + leaseMs, Math.floor(usable.redisNow + leaseMs)];
    let failure = 'no result within the lease';
    const sent = inChunks(submissionIds, usable.workers.length).map((ids) => {
      this.#jobCount += 1;
      // BullMQ reserves integers and colons. Ids are never reused, even after Redis lost its data.
      const jobId = `${tokenIdOf(usable.fencingToken)}-${this.#jobCount}`;
      const onExpired = () => this.#fail(jobId, failure);
      const { fencingToken } = usable;
      const job = createInFlightJob({
        upstream,
        fencingToken,
        submissionIds: ids,
        report,
        clock,
        sentAt,
        endsAt,
        onExpired,
      });
      this.#jobs.set(jobId, job);
      const timeout_ms = timeoutMsOf(upstream);
      const data: PollJob = {
        upstream,
        submission_ids: ids,
        fencing_token: fencingToken,
        expires_at: expiresAt,
        timeout_ms,
      };
      data.signature = signer.sign('job', signedJob(jobId, data));
      return { added: { name: 'poll', data, opts: { jobId, ...RETENTION } }, job };
    });
    // The jobs may be in the queue despite an error: then their lease has to expire.
    this.queue.addBulk(sent.map(({ added }) => added)).catch((error: Error) => {
      failure += `, and Redis did not confirm the job: ${error.message}`;
    });
    await Promise.all(sent.map(({ job }) => job.ended));
  }

  /** Removes the waiting jobs from the queue and closes. Results of active jobs are ignored. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const waiting = [...this.#jobs.keys()];
    for (const job of this.#jobs.values()) job.end();
    this.#jobs.clear();
    if (this.#deps.link.usable && waiting.length > 0)
      await withTimeout(
        CLOSE_WITHIN_MS,
        Promise.allSettled(waiting.map((jobId) => this.queue.remove(jobId))),
      );
    this.#results.close();
    await withTimeout(2 * CLOSE_WITHIN_MS, this.queue.close());
  }

  #usable() {
    if (this.#isClosed || !this.#results.isReading || this.#deps.clock.now() < this.#fallbackUntil)
      return undefined;
    const usable = this.#deps.link.usable;
    return usable && usable.workers.length > 0 ? usable : undefined;
  }

  #accept(jobId: string, data: unknown): NotPolled | 'polled' | 'rejected' | undefined {
    const job = this.#jobs.get(jobId);
    if (!job) return undefined;
    const { signer, clock, onEvent } = this.#deps;
    const reject = (reason: Rejection) => {
      onEvent({ kind: 'rejected', upstream: job.upstream, jobId, reason });
      return 'rejected' as const;
    };
    const result = pollResultSchema.safeParse(data);
    if (!result.success) return reject('malformed');
    const { not_polled, signature } = result.data;
    const content = signedResult({ jobId, fencingToken: job.fencingToken }, result.data);
    if (signer.problemOf('result', content, signature) !== undefined) return reject('signature');
    const accepted = job.accept(result.data);
    if (accepted !== 'accepted') return reject(accepted);
    this.#lastResultAt = clock.now();
    return not_polled ?? 'polled';
  }

  #complete(jobId: string, returnvalue: unknown): void {
    const result = this.#accept(jobId, returnvalue);
    const job = this.#jobs.get(jobId);
    if (!job || result === undefined) return;
    if (result === 'rejected') {
      this.#fail(jobId, 'the result of a worker was rejected');
      return;
    }
    this.#jobs.delete(jobId);
    if (result === 'polled') {
      job.end();
      return;
    }
    const { local, onEvent, timeoutMsOf } = this.#deps;
    const submissionIds = job.reclaim(timeoutMsOf(job.upstream) + START_MARGIN_MS);
    onEvent({
      kind: 'returned',
      reason: result,
      upstream: job.upstream,
      submissions: submissionIds.length,
    });
    void local.poll({ upstream: job.upstream, submissionIds }, job.report).finally(() => job.end());
  }

  #fail(jobId: string, reason: string): void {
    const job = this.#jobs.get(jobId);
    if (!job) return;
    this.#jobs.delete(jobId);
    job.end();
    if (this.#lastResultAt < job.sentAt) this.#fallbackUntil = this.#deps.clock.now() + FALLBACK_MS;
    this.#deps.onEvent({ kind: 'job_failed', upstream: job.upstream, reason });
    // Workers would refuse it: it is expired, or will be soon.
    if (this.#deps.link.usable) void this.queue.remove(jobId).catch(() => undefined);
  }
}

/**
 * Splits a batch into one job per worker, of limited size: the cost of a job hardly depends on its
 * number of ids.
 */
function inChunks(ids: readonly string[], workers: number): string[][] {
  const size = Math.min(MAX_IDS_PER_JOB, Math.ceil(ids.length / workers));
  const chunks: string[][] = [];
  for (let from = 0; from < ids.length; from += size) chunks.push(ids.slice(from, from + size));
  return chunks;
}

/** Why a result was rejected. */
const REJECTED = {
  malformed: 'the result has an invalid format',
  signature: 'the result is not signed with redis.secret, or is signed for another job',
  foreign_id: 'the result contains a submission that is not part of its job',
} as const satisfies Record<Rejection, string>;

/** Returns a listener that logs jobs without a usable result. */
export function logPolls(log: Log): (event: EngineEvent) => void {
  return (event) => {
    const { upstream } = event;
    switch (event.kind) {
      case 'returned':
        return log.warn(
          { upstream, reason: event.reason, submissions: event.submissions },
          'polls.returned',
        );
      case 'job_failed':
        return log.warn({ upstream, reason: escapeText(event.reason) }, 'polls.job_failed');
      case 'rejected': {
        const fields = {
          upstream,
          job_id: event.jobId,
          reason: REJECTED[event.reason],
          advice:
            'run all workers with the version and the redis.secret of this server; find other writers to Redis',
        };
        return log.error(fields, 'polls.rejected');
      }
      default:
        return event satisfies never;
    }
  };
}
