import { Queue } from 'bullmq';
import type { Observation } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import type { PollBatch, PollEngine } from '../../watch/ports.ts';
import { tokenIdOf } from './fencing-token.ts';
import { InFlightJob } from './in-flight-job.ts';
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
import { type RedisSettings, withTimeout } from './redis.ts';
import type { RedisLink } from './redis-link.ts';
import { ResultStream } from './result-stream.ts';
import type { Signer } from './signer.ts';

/**
 * Why nothing of a result is believed. `malformed`: it is not what a worker of this format sends; `signature`: it has none, or that of
 * another secret or job; `foreign_id`: it names an id of no poll of the job; `implausible_time`: its requests took longer than the
 * job is out.
 */
export const REJECTIONS = ['malformed', 'signature', 'foreign_id', 'implausible_time'] as const;
export type Rejection = (typeof REJECTIONS)[number];

export type EngineEvent =
  /** A worker asked nothing of that job; this server does. */
  | { kind: 'returned'; reason: NotPolled; upstream: string; submissions: number }
  /** Nothing, or nothing usable, came of a job: its submissions are asked about again after the lease. */
  | { kind: 'lost'; upstream: string; reason: string }
  | { kind: 'rejected'; upstream: string; jobId: string; reason: Rejection };

type EngineDeps = {
  redis: RedisSettings;
  link: RedisLink;
  signer: Signer;
  /** Asks from this process, where no worker can. */
  local: PollEngine;
  clock: Clock;
  leaseMsOf: (upstream: string) => number;
  timeoutMsOf: (upstream: string) => number;
  onEvent: (event: EngineEvent) => void;
};

/** What is answered later than this before the pacer's own end of the lease is dropped here. */
const LEASE_MARGIN_MS = 100;
/** For so long this process asks after workers that announce themselves answered nothing, whatever keeps them from it. */
const DISTRUST_MS = 30_000;
const CLOSE_WITHIN_MS = 1_000;
/** Of the stream that answers come back in: Redis keeps it in memory. */
const MAX_EVENTS = 2_000;
/** For whoever looks into the queue; nothing is read from a job that is done. */
const RETENTION = { removeOnComplete: { age: 600, count: 100 }, removeOnFail: { age: 86_400, count: 1_000 } };

/**
 * Workers anywhere do the asking. A batch travels as jobs of BullMQ; answers come back in its events, some while a job runs.
 * While Redis is away or has no worker this process asks itself. What surely was not asked is asked here; of anything else
 * that goes wrong nobody knows whether it was, so the places in the budget stay taken until the lease is over.
 */
export class BullmqEngine implements PollEngine {
  readonly queue: Queue<PollJob>;
  readonly #deps: EngineDeps;
  readonly #flights = new Map<string, InFlightJob>();
  readonly #answers: ResultStream;
  #answeredAt = Number.NEGATIVE_INFINITY;
  #distrustedUntil = Number.NEGATIVE_INFINITY;
  #handedOut = 0;
  #isClosed = false;

  constructor(deps: EngineDeps) {
    this.#deps = deps;
    const { redis, clock, link } = deps;
    this.queue = new Queue(POLLS_QUEUE, {
      prefix: redis.prefix,
      connection: link.redis,
      streams: { events: { maxLen: MAX_EVENTS } },
      // With it, Redis going away while it runs would leave a queue that never works again.
      skipVersionCheck: true,
    });
    this.queue.on('error', () => undefined);
    const listener = {
      progress: (jobId: string, data: unknown) => void this.#arrive(jobId, data),
      completed: (jobId: string, returnvalue: unknown) => this.#complete(jobId, returnvalue),
      failed: (jobId: string, reason: string) => this.#lose(jobId, reason),
    };
    this.#answers = new ResultStream({ redis, clock, listener });
    link.onFencingToken(({ sinceMs }) => {
      this.#answers.readFrom(sinceMs);
      // What was lost with the Redis of before is not the workers' fault.
      this.#answeredAt = clock.now();
      this.#distrustedUntil = Number.NEGATIVE_INFINITY;
      // Nobody does what was handed out before.
      void this.queue.drain().catch(() => undefined);
    });
  }

  /** Whether answers of workers would be heard. */
  get isReading(): boolean {
    return this.#answers.isReading;
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
    const out = inChunks(submissionIds, usable.workers.length).map((ids) => {
      this.#handedOut += 1;
      // Neither an integer nor with a colon, which BullMQ keeps for itself; and never again after Redis lost its memory.
      const jobId = `${tokenIdOf(usable.epoch)}-${this.#handedOut}`;
      const onLost = () => this.#lose(jobId, 'no answer within the lease');
      const { epoch } = usable;
      const flight = new InFlightJob({ upstream, epoch, submissionIds: ids, report, clock, sentAt, endsAt, onLost });
      this.#flights.set(jobId, flight);
      const timeout_ms = timeoutMsOf(upstream);
      const data: PollJob = { upstream, submission_ids: ids, epoch, expires_at: expiresAt, timeout_ms };
      data.signature = signer.sign('job', signedJob(jobId, data));
      return { job: { name: 'poll', data, opts: { jobId, ...RETENTION } }, flight };
    });
    // A failure may be one of the answer alone, with the jobs in the queue: then their lease has to run out.
    this.queue.addBulk(out.map(({ job }) => job)).catch(() => undefined);
    await Promise.all(out.map(({ flight }) => flight.ended));
  }

  /** Takes back what waits in the queue, and ends; what is under way is lost. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const waiting = [...this.#flights.keys()];
    for (const flight of this.#flights.values()) flight.end();
    this.#flights.clear();
    if (this.#deps.link.usable && waiting.length > 0)
      await withTimeout(CLOSE_WITHIN_MS, Promise.allSettled(waiting.map((jobId) => this.queue.remove(jobId))));
    this.#answers.close();
    await withTimeout(2 * CLOSE_WITHIN_MS, this.queue.close());
  }

  #usable() {
    if (this.#isClosed || !this.#answers.isReading || this.#deps.clock.now() < this.#distrustedUntil) return undefined;
    const usable = this.#deps.link.usable;
    return usable && usable.workers.length > 0 ? usable : undefined;
  }

  #arrive(jobId: string, data: unknown): NotPolled | 'polled' | 'rejected' | undefined {
    const flight = this.#flights.get(jobId);
    if (!flight) return undefined;
    const { signer, clock, onEvent } = this.#deps;
    const reject = (reason: Rejection) => {
      onEvent({ kind: 'rejected', upstream: flight.upstream, jobId, reason });
      return 'rejected' as const;
    };
    const result = pollResultSchema.safeParse(data);
    if (!result.success) return reject('malformed');
    const { polled, not_asked, signature } = result.data;
    const content = signedResult({ jobId, epoch: flight.fencingToken }, result.data);
    if (signer.verify('result', content, signature).kind === 'invalid') return reject('signature');
    const arrived = flight.accept(polled);
    if (arrived !== 'accepted') return reject(arrived);
    this.#answeredAt = clock.now();
    return not_asked ?? 'polled';
  }

  #complete(jobId: string, returnvalue: unknown): void {
    const arrived = this.#arrive(jobId, returnvalue);
    const flight = this.#flights.get(jobId);
    if (!flight || arrived === undefined) return;
    if (arrived === 'rejected') {
      this.#lose(jobId, 'the result of a worker was rejected');
      return;
    }
    this.#flights.delete(jobId);
    if (arrived === 'polled') {
      flight.end();
      return;
    }
    const { local, onEvent, timeoutMsOf } = this.#deps;
    const submissionIds = flight.reclaim(timeoutMsOf(flight.upstream) + START_MARGIN_MS);
    onEvent({ kind: 'returned', reason: arrived, upstream: flight.upstream, submissions: submissionIds.length });
    void local.poll({ upstream: flight.upstream, submissionIds }, flight.report).finally(() => flight.end());
  }

  #lose(jobId: string, reason: string): void {
    const flight = this.#flights.get(jobId);
    if (!flight) return;
    this.#flights.delete(jobId);
    flight.end();
    if (this.#answeredAt < flight.sentAt) this.#distrustedUntil = this.#deps.clock.now() + DISTRUST_MS;
    this.#deps.onEvent({ kind: 'lost', upstream: flight.upstream, reason });
    // Workers would leave it alone: it is expired, or soon will be.
    if (this.#deps.link.usable) void this.queue.remove(jobId).catch(() => undefined);
  }
}

/** One job for each worker, as far as one may be that large: what a job costs is the same however many ids it holds. */
function inChunks(ids: readonly string[], workers: number): string[][] {
  const size = Math.min(MAX_IDS_PER_JOB, Math.ceil(ids.length / workers));
  const chunks: string[][] = [];
  for (let from = 0; from < ids.length; from += size) chunks.push(ids.slice(from, from + size));
  return chunks;
}
