import { type Job, UnrecoverableError, Worker } from 'bullmq';
import type { UpstreamResponse } from '../../domain/classify.ts';
import type { Clock } from '../../domain/clock.ts';
import type { SendPoll } from '../local.ts';
import { FencingTokenStore, isIssuedBy, type RedisState, verifyFencingToken } from './fencing-token.ts';
import {
  MAX_DETAIL_CHARS,
  type NotPolled,
  POLLS_QUEUE,
  type Polled,
  type PollJob,
  type PollResult,
  pollJobSchema,
  START_MARGIN_MS,
  signedJob,
  signedResult,
} from './poll-job.ts';
import { disconnect, openLoopConnection, openRedis, type RedisSettings, waitUntilReady, withTimeout } from './redis.ts';
import { ResultSender } from './result-sender.ts';
import type { SignatureProblem, Signer } from './signer.ts';
import { ANNOUNCE_MS, WorkerRegistry } from './worker-registry.ts';

export type PollWorkerEvent =
  | { kind: 'up' }
  /** `detail`: what Redis or the network said last. */
  | { kind: 'away'; detail: string }
  | { kind: 'returned'; reason: NotPolled; upstream: string }
  | { kind: 'refused'; reason: string }
  /** The server's secret is none of this worker's, which takes no jobs until it is. */
  | { kind: 'secret_differs'; problem: SignatureProblem }
  | { kind: 'secret_agrees' };

type PollWorkerDeps = {
  redis: RedisSettings;
  signer: Signer;
  /** Unlike that of any other worker. */
  name: string;
  version: string;
  /** Jobs at once. */
  concurrency: number;
  clock: Clock;
  ask: SendPoll;
  /** How long a request to that upstream may take here; undefined: there is none of that name. */
  timeoutMsOf: (upstream: string) => number | undefined;
  onEvent: (event: PollWorkerEvent) => void;
};

const REFUSED_SIGNATURE = {
  unsigned: 'its job is not signed: somebody else wrote it to Redis, or the server has no redis.secret',
  no_secret: 'its job is signed, and this worker has no redis.secret',
  other_secret:
    'the signature of its job is not that of redis.secret: somebody else wrote it to Redis, or the secrets differ',
} as const satisfies Record<SignatureProblem, string>;

const LOCK_MS = 30_000;
const RETRY_MS = 1_000;
const LEAVE_WITHIN_MS = 1_000;
const SETTLE_WITHIN_MS = 1_000;
const READY_WITHIN_MS = 2_000;

/**
 * A pair of hands somewhere: takes jobs, asks about each of their ids once, sends the answers back. It keeps nothing, and
 * asks only what the server of now handed out and still counts on; a job is never begun a second time.
 */
export class PollWorker {
  readonly #deps: PollWorkerDeps;
  readonly #connection;
  readonly #redis;
  readonly #worker: Worker<unknown, PollResult>;
  readonly #epoch: FencingTokenStore;
  readonly #register: WorkerRegistry;
  readonly #jobs = new Set<Promise<unknown>>();
  /** Ids of the jobs that were begun, with when they expire: a signed job that comes again is refused. */
  readonly #begun = new Map<string, number>();
  /** Signs as the server does. */
  #signer: Signer;
  #secretProblem: SignatureProblem | undefined;
  #isStarted = false;
  #inFlight = 0;
  #isDraining = false;
  #isUp: boolean | undefined;
  #cancelTimer: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: PollWorkerDeps) {
    this.#deps = deps;
    const { redis, signer, name, concurrency } = deps;
    this.#signer = signer;
    this.#redis = openRedis(redis.url);
    this.#redis.on('error', (error) => this.#tellAway(error.message));
    this.#epoch = new FencingTokenStore(this.#redis, redis);
    this.#register = new WorkerRegistry(this.#redis, redis);
    this.#connection = openLoopConnection(redis.url);
    this.#worker = new Worker<unknown, PollResult>(POLLS_QUEUE, (job) => this.#begin(job), {
      connection: this.#connection.redis,
      prefix: redis.prefix,
      name,
      concurrency,
      // Not before its secret is known to be the server's.
      autorun: false,
      lockDuration: LOCK_MS,
      // One that stalled may have been asked: it fails, and is asked again as another job once its lease is over.
      maxStalledCount: 0,
      runRetryDelay: RETRY_MS,
      skipVersionCheck: true,
    });
    this.#worker.on('error', () => undefined);
    this.#redis.on('ready', () => this.#announceSoon(0));
  }

  /** Takes nothing more, and waits up to `limitMs` for requests under way; what is later is lost. Idempotent. */
  close(limitMs: number): Promise<void> {
    this.#closing ??= this.#close(limitMs);
    return this.#closing;
  }

  async #close(limitMs: number): Promise<void> {
    this.#isDraining = true;
    this.#cancelTimer?.();
    // First of all, so that the server hands out nothing more to it.
    await withTimeout(LEAVE_WITHIN_MS, this.#register.unregister(this.#deps.name));
    const closed = this.#worker.close();
    await withTimeout(limitMs, Promise.race([closed, Promise.allSettled(this.#jobs)]));
    // Its answers are still to be sent; without Redis that may take for ever.
    await withTimeout(Math.min(limitMs, SETTLE_WITHIN_MS), closed);
    this.#connection.disconnect();
    disconnect(this.#redis);
  }

  #announceSoon(delayMs: number): void {
    this.#cancelTimer?.();
    // Once it is there again, 'ready' goes on.
    if (this.#isDraining || this.#redis.status !== 'ready') return;
    this.#cancelTimer = this.#deps.clock.after(delayMs, async () => {
      const { name, version, concurrency } = this.#deps;
      try {
        this.#follow((await this.#epoch.read()).epoch);
        // It has taken its leave meanwhile: announced again, it would be handed jobs that nobody takes.
        if (this.#isDraining) return;
        await this.#register.announce({ name, version, in_flight: this.#inFlight, concurrency }, this.#signer);
        if (!this.#isUp) this.#deps.onEvent({ kind: 'up' });
        this.#isUp = true;
      } catch (error) {
        this.#tellAway(messageOf(error));
      }
      this.#announceSoon(ANNOUNCE_MS);
    });
  }

  /** Takes jobs while the server has a secret of this worker. Without an epoch nothing is known of the server: all stays as it is. */
  #follow(epoch: string | undefined): void {
    if (this.#isDraining || (epoch === undefined && this.#secretProblem !== undefined)) return;
    const { signer, onEvent } = this.#deps;
    const verified = epoch === undefined ? undefined : verifyFencingToken(epoch, signer);
    const problem = verified?.kind === 'invalid' ? verified.problem : undefined;
    if (verified?.kind === 'valid') this.#signer = verified.signer;
    const before = this.#secretProblem;
    this.#secretProblem = problem;
    if (problem !== undefined) {
      if (problem !== before) onEvent({ kind: 'secret_differs', problem });
      if (before === undefined && this.#isStarted) void this.#worker.pause(true);
      return;
    }
    if (before !== undefined) onEvent({ kind: 'secret_agrees' });
    if (!this.#isStarted) this.#worker.run().catch(() => undefined);
    else if (before !== undefined) void this.#worker.resume();
    this.#isStarted = true;
  }

  #tellAway(detail: string): void {
    if (this.#isUp === false || this.#isDraining) return;
    this.#isUp = false;
    this.#deps.onEvent({ kind: 'away', detail });
  }

  #begin(job: Job<unknown, PollResult>): Promise<PollResult> {
    const processed = this.#process(job);
    const ended = processed.catch(() => undefined).finally(() => this.#jobs.delete(ended));
    this.#jobs.add(ended);
    return processed;
  }

  async #process(job: Job<unknown, PollResult>): Promise<PollResult> {
    const parsed = pollJobSchema.safeParse(job.data);
    if (!parsed.success) throw this.#refusal('this is no job that a server of this version hands out');
    const poll = parsed.data;
    const jobId = job.id ?? '';
    const verified = this.#deps.signer.verify('job', signedJob(jobId, poll), poll.signature);
    if (verified.kind === 'invalid') throw this.#refusal(REFUSED_SIGNATURE[verified.problem]);
    const sign = (result: PollResult): PollResult => ({
      ...result,
      signature: verified.signer.sign('result', signedResult({ jobId, epoch: poll.epoch }, result)),
    });
    // Its first worker may have asked, and the budget has one place for each id.
    if (job.attemptsStarted > 1 || this.#begun.has(jobId)) throw this.#refusal('it was begun before');
    const reason = await this.#reasonNotToAsk(poll, jobId);
    if (reason !== undefined) {
      this.#deps.onEvent({ kind: 'returned', reason, upstream: poll.upstream });
      return sign({ polled: [], not_asked: reason });
    }
    const send = (polled: Polled[]) => job.updateProgress(sign({ polled }));
    return sign({ polled: await this.#askAll(poll, send) });
  }

  async #reasonNotToAsk(
    { upstream, epoch, timeout_ms, expires_at }: PollJob,
    jobId: string,
  ): Promise<NotPolled | undefined> {
    const timeoutMs = this.#deps.timeoutMsOf(upstream);
    if (this.#isDraining) return 'drained';
    if (timeoutMs === undefined) return 'upstream';
    if (timeoutMs > timeout_ms) return 'timeout';
    let moment: RedisState;
    let lookedAt: number;
    try {
      // It may come back a little later than the connection that brought the job.
      await waitUntilReady(this.#redis, READY_WITHIN_MS);
      lookedAt = performance.now();
      moment = await this.#epoch.read();
    } catch {
      return 'redis';
    }
    // Of a Redis before this one it may have been asked; of this very one it was not, or it would have been begun.
    if (!isIssuedBy(epoch, moment.runId)) throw this.#refusal('another server handed it out');
    if (moment.epoch === undefined) return 'emptied';
    if (moment.epoch !== epoch) throw this.#refusal('another server handed it out');
    // The clock of Redis was read after the question left: by now it can't show more than that.
    const latestNow = moment.redisMs + performance.now() - lookedAt;
    if (latestNow > expires_at - timeoutMs - START_MARGIN_MS) return 'late';
    if (this.#isDraining) return 'drained';
    for (const [id, expiresAt] of this.#begun) {
      if (expiresAt >= moment.redisMs) break;
      this.#begun.delete(id);
    }
    if (this.#begun.has(jobId)) throw this.#refusal('it was begun before');
    this.#begun.set(jobId, expires_at);
    return undefined;
  }

  /** Returns what `send` did not send while the job ran. */
  async #askAll({ upstream, submission_ids }: PollJob, send: (batch: Polled[]) => Promise<void>): Promise<Polled[]> {
    const { ask, clock } = this.#deps;
    const results = new ResultSender({ send, clock });
    await Promise.all(
      submission_ids.map(async (submissionId) => {
        this.#inFlight += 1;
        const askedAt = clock.now();
        const response = withoutLongDetail(await ask(upstream, submissionId));
        this.#inFlight -= 1;
        results.add({ submission_id: submissionId, duration_ms: clock.now() - askedAt, response });
      }),
    );
    return results.end();
  }

  #refusal(reason: string): UnrecoverableError {
    this.#deps.onEvent({ kind: 'refused', reason });
    return new UnrecoverableError(reason);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The server's classifier keeps less of it. */
function withoutLongDetail(answer: UpstreamResponse): UpstreamResponse {
  return answer.kind === 'failure' ? { ...answer, detail: answer.detail.slice(0, MAX_DETAIL_CHARS) } : answer;
}
