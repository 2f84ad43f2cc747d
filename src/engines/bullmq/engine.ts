import { Queue } from 'bullmq';
import type { Observation } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import { withTimeout } from '../../platform/with-timeout.ts';
import type { PollBatch, PollEngine } from '../../watch/ports.ts';
import { tokenIdOf } from './fencing-token.ts';
import { createInFlightJob, type InFlightJob } from './in-flight-job.ts';
import {
  MAX_IDS_PER_JOB,
  type NotPolled,
  POLLS_QUEUE,
  type PollJob,
  pollResultSchema,
  START_MARGIN_MS,
  signedJob,
  signedResult,
} from './poll-job.ts';
import type { RedisSettings } from './redis.ts';
import type { RedisLink } from './redis-link.ts';
import { ResultStream } from './result-stream.ts';
import type { MessageSigner } from './signer.ts';

/**
 * Why a result is rejected. `malformed`: it does not match the format; `signature`: missing, or of another secret or job;
 * `foreign_id`: it contains an id that is not in the job; `implausible_time`: a request took longer than the job has existed.
 */
export const REJECTIONS = ['malformed', 'signature', 'foreign_id', 'implausible_time'] as const;
export type Rejection = (typeof REJECTIONS)[number];

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
/** After a job without any result, this process polls by itself for this long: workers are registered but do not respond. */
const FALLBACK_MS = 30_000;
const CLOSE_WITHIN_MS = 1_000;
/** Maximum length of the event stream, which Redis keeps in memory. */
const MAX_EVENTS = 2_000;
/** Finished jobs are kept for inspection only. */
const RETENTION = { removeOnComplete: { age: 600, count: 100 }, removeOnFail: { age: 86_400, count: 1_000 } };

/**
 * Distributes polls to workers through BullMQ. A batch is split into jobs; results arrive as queue events, some while a job is
 * running. Without Redis or without workers this process polls by itself. It also polls the submissions of a returned job, which
 * were certainly not polled. After any other failure that is unknown, so their share of the request budget stays occupied until
 * the lease expires.
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
    const sent = inChunks(submissionIds, usable.workers.length).map((ids) => {
      this.#jobCount += 1;
      // BullMQ reserves integers and colons. Ids are never reused, even after Redis lost its data.
      const jobId = `${tokenIdOf(usable.fencingToken)}-${this.#jobCount}`;
      const onExpired = () => this.#fail(jobId, 'no result within the lease');
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
    this.queue.addBulk(sent.map(({ added }) => added)).catch(() => undefined);
    await Promise.all(sent.map(({ job }) => job.ended));
  }

  /** Removes the waiting jobs from the queue and closes. Results of active jobs are ignored. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const waiting = [...this.#jobs.keys()];
    for (const job of this.#jobs.values()) job.end();
    this.#jobs.clear();
    if (this.#deps.link.usable && waiting.length > 0)
      await withTimeout(CLOSE_WITHIN_MS, Promise.allSettled(waiting.map((jobId) => this.queue.remove(jobId))));
    this.#results.close();
    await withTimeout(2 * CLOSE_WITHIN_MS, this.queue.close());
  }

  #usable() {
    if (this.#isClosed || !this.#results.isReading || this.#deps.clock.now() < this.#fallbackUntil) return undefined;
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
    const { polled, not_polled, signature } = result.data;
    const content = signedResult({ jobId, fencingToken: job.fencingToken }, result.data);
    if (signer.verify('result', content, signature).kind === 'invalid') return reject('signature');
    const accepted = job.accept(polled);
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
    onEvent({ kind: 'returned', reason: result, upstream: job.upstream, submissions: submissionIds.length });
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

/** Splits a batch into one job per worker, of limited size: the cost of a job hardly depends on its number of ids. */
function inChunks(ids: readonly string[], workers: number): string[][] {
  const size = Math.min(MAX_IDS_PER_JOB, Math.ceil(ids.length / workers));
  const chunks: string[][] = [];
  for (let from = 0; from < ids.length; from += size) chunks.push(ids.slice(from, from + size));
  return chunks;
}
