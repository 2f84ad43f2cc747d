import { randomUUID } from 'node:crypto';
import type { Queue, QueueEvents } from 'bullmq';
import type { Redis } from 'ioredis';
import { type Clock, withTimeout } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { PollBatch, PollEngine } from '../polling/poll-engine.ts';
import type { Observation } from '../submissions/classify.ts';
import { POLLS_QUEUE, readServer } from './connections.ts';
import {
  MAX_IDS_PER_JOB,
  type PollJob,
  type PollResult,
  pollResultSchema,
  type RedisLink,
} from './polls-queue.ts';

/** A job that was sent to the workers and has no result yet. */
type InFlightJob = {
  upstream: string;
  /** Without an observation. */
  submissionIds: Set<string>;
  endsAt: number;
  report: (observation: Observation) => void;
  /** Ends its part of the batch. */
  end: () => void;
};

type EngineDeps = {
  redis: Redis;
  queue: Queue<PollJob, PollResult>;
  events: QueueEvents;
  link: RedisLink;
  /** Polls from this process if no worker can. */
  local: PollEngine;
  clock: Clock;
  log: Log;
  leaseMsOf: (upstream: string) => number;
};

/** A job expires this much before the scheduler's lease. */
const LEASE_MARGIN_MS = 100;
/** Redis may lose a test job. */
const TEST_AGAIN_MS = 30_000;
const DRAIN_WITHIN_MS = 1_000;
/** Finished jobs are kept for inspection only. */
const RETENTION = {
  removeOnComplete: { age: 600, count: 100 },
  removeOnFail: { age: 86_400, count: 1_000 },
};

/**
 * Splits a batch into jobs, which return observations. Without Redis or workers, this process
 * polls. If a job returns nothing, its ids wait for the lease, because a worker may still poll
 * them, and this process polls until a worker completes a test job without ids.
 */
export class BullmqEngine implements PollEngine {
  readonly #deps: EngineDeps;
  readonly #jobs = new Map<string, InFlightJob>();
  /** When to send the next test job, for the upstreams that this process polls after a failure. */
  readonly #testAt = new Map<string, number>();
  #isClosed = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    deps.events.on('completed', ({ jobId, returnvalue }) => this.#complete(jobId, returnvalue));
    deps.events.on('failed', ({ jobId, failedReason }) => this.#fail(jobId, failedReason));
  }

  async poll(batch: PollBatch, report: (observation: Observation) => void): Promise<void> {
    const { redis, queue, link, local, clock, leaseMsOf } = this.#deps;
    const { upstream, submissionIds } = batch;
    const { workers, paused } = link.health;
    const sentAt = clock.now();
    const isTaken = workers.length > 0 && !paused.includes(POLLS_QUEUE);
    const testAt = this.#testAt.get(upstream);
    const isPossible = !this.#isClosed && link.isUsable && isTaken && sentAt >= (testAt ?? 0);
    const server = isPossible ? await readServer(redis).catch(() => undefined) : undefined;
    if (server && testAt !== undefined) this.#sendTest(upstream, server.runId, sentAt);
    if (!server || testAt !== undefined) return local.poll(batch, report);
    const endsAt = sentAt + leaseMsOf(upstream) - LEASE_MARGIN_MS;
    const expires_at = Math.floor(server.nowMs + endsAt - clock.now());
    const ended: Promise<void>[] = [];
    let failure = 'no result within the lease';
    const added = inChunks(submissionIds, workers.length).map((ids) => {
      // Also unique after Redis lost its data, unlike BullMQ's own ids.
      const jobId = randomUUID();
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancelLease = clock.after(endsAt - clock.now(), () => this.#fail(jobId, failure));
      const end = () => {
        cancelLease();
        this.#jobs.delete(jobId);
        resolve();
      };
      ended.push(promise);
      this.#jobs.set(jobId, { upstream, submissionIds: new Set(ids), endsAt, report, end });
      const data: PollJob = { upstream, submission_ids: ids, expires_at, run_id: server.runId };
      return { name: 'poll', data, opts: { jobId, ...RETENTION } };
    });
    // The jobs may be in the queue despite an error: then their lease has to expire.
    queue.addBulk(added).catch(({ message }: Error) => {
      failure += `, and Redis did not confirm the job: ${message}`;
    });
    await Promise.all(ended);
  }

  #sendTest(upstream: string, run_id: string, now: number): void {
    this.#testAt.set(upstream, now + TEST_AGAIN_MS);
    // Always the same id, so that at most one waits.
    const jobId = `test-${upstream}`;
    const endsAt = Number.MAX_SAFE_INTEGER;
    const end = () => this.#jobs.delete(jobId);
    this.#jobs.set(jobId, { upstream, submissionIds: new Set(), endsAt, report() {}, end });
    const data: PollJob = { upstream, submission_ids: [], expires_at: endsAt, run_id };
    this.#deps.queue
      .add('poll', data, { jobId, removeOnComplete: true, removeOnFail: true })
      .catch(() => undefined);
  }

  /** Removes the waiting jobs. Results of active jobs are ignored. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { queue, link } = this.#deps;
    const mayWait = this.#jobs.size > 0 && link.isUsable;
    for (const job of this.#jobs.values()) job.end();
    if (mayWait) await withTimeout(DRAIN_WITHIN_MS, queue.drain());
  }

  /** Results after the lease, and of jobs of another server, are ignored. */
  #complete(jobId: string, returnvalue: unknown): void {
    const job = this.#jobs.get(jobId);
    const at = this.#deps.clock.now();
    if (!job || at >= job.endsAt) return;
    const result = pollResultSchema.safeParse(returnvalue);
    const isForeign = ({ submissionId }: { submissionId: string }) =>
      !job.submissionIds.has(submissionId);
    if (!result.success || result.data.observations.some(isForeign)) {
      this.#fail(jobId, 'the result does not match the job; do all run the same version?');
      return;
    }
    this.#testAt.delete(job.upstream);
    const { worker, observations } = result.data;
    for (const observation of observations)
      if (job.submissionIds.delete(observation.submissionId))
        job.report({ ...observation, at, worker });
    job.end();
  }

  #fail(jobId: string, reason: string): void {
    const job = this.#jobs.get(jobId);
    if (!job) return;
    job.end();
    const { clock, log } = this.#deps;
    if (!this.#testAt.has(job.upstream)) this.#testAt.set(job.upstream, clock.now());
    log.warn({ upstream: job.upstream, reason: escapeText(reason) }, 'polls.job_failed');
  }
}

/** One job per worker, of limited size: the cost of a job hardly depends on its number of ids. */
function inChunks(ids: readonly string[], workers: number): string[][] {
  const size = Math.min(MAX_IDS_PER_JOB, Math.ceil(ids.length / workers));
  const chunks: string[][] = [];
  for (let from = 0; from < ids.length; from += size) chunks.push(ids.slice(from, from + size));
  return chunks;
}

const CHECK_MS = 100;

/**
 * Resolves when no worker polls for the previous process any more, because this budget does not
 * count those polls: at the latest when its leases have expired, or on abort.
 */
export async function untilPreviousPollsEnded(deps: {
  queue: Queue;
  link: RedisLink;
  clock: Clock;
  /** Remaining time of the longest lease of the previous process; 0: there is none. */
  leasesLastMs: number;
  signal: AbortSignal;
}): Promise<void> {
  const { queue, link, clock, leasesLastMs, signal } = deps;
  const until = clock.now() + leasesLastMs;
  const hasPreviousJobs = async () => {
    if (!link.isUsable) return true;
    try {
      await queue.drain();
      return (await queue.getActiveCount()) > 0;
    } catch {
      return true;
    }
  };
  while (clock.now() < until && !signal.aborted && (await hasPreviousJobs()))
    await new Promise<void>((resolve) => clock.after(CHECK_MS, resolve));
}
