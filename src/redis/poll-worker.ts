import { type Job, UnrecoverableError, Worker } from 'bullmq';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { SendPoll } from '../polling/upstreams.ts';
import { FencingTokenStore, isIssuedBy, problemOfToken, type RedisState } from './fencing-token.ts';
import {
  type MessageSigner,
  type NotPolled,
  POLLS_QUEUE,
  type Polled,
  type PollJob,
  type PollResult,
  pollJobSchema,
  type SignatureProblem,
  START_MARGIN_MS,
  signedJob,
  signedResult,
} from './messages.ts';
import {
  disconnect,
  isDenial,
  openLoopConnection,
  openRedis,
  type RedisSettings,
  waitUntilReady,
} from './redis.ts';
import { ANNOUNCE_MS, WorkerRegistry } from './worker-registry.ts';

export type PollWorkerEvent =
  | { kind: 'connected' }
  /** `detail`: the last message of Redis or of the network. */
  | { kind: 'disconnected'; detail: string }
  | { kind: 'returned'; reason: NotPolled; upstream: string }
  | { kind: 'refused'; reason: string }
  /** The worker does not know the server's secret, and takes no jobs until it does. */
  | { kind: 'secret_mismatch'; problem: SignatureProblem }
  | { kind: 'secret_matched' };

type PollWorkerDeps = {
  redis: RedisSettings;
  signer: MessageSigner;
  /** Unique among all workers. */
  name: string;
  version: string;
  /** Maximum jobs at a time. */
  concurrency: number;
  clock: Clock;
  sendPoll: SendPoll;
  /** Returns the request timeout of an upstream; undefined if it is not configured. */
  timeoutMsOf: (upstream: string) => number | undefined;
  onEvent: (event: PollWorkerEvent) => void;
};

const REFUSED_SIGNATURE = {
  unsigned:
    'the job is unsigned: another client of Redis added it, or the server has no redis.secret',
  no_secret: 'the job is signed, and this worker has no redis.secret',
  other_secret:
    'the job is not signed with redis.secret: another client of Redis added it, or the secrets differ',
} as const satisfies Record<SignatureProblem, string>;

/**
 * A mismatch is reported when it has lasted this long: a server that has stopped leaves its fencing
 * token in Redis, and the next one, with another secret, may just be starting.
 */
const MISMATCH_LASTS_MS = 5_000;
const LOCK_MS = 30_000;
const RETRY_MS = 1_000;
const UNREGISTER_WITHIN_MS = 1_000;
const SEND_WITHIN_MS = 1_000;
const READY_WITHIN_MS = 2_000;
/**
 * A message per response would cost Redis twice the commands, and the workers half of their rate
 * (row finalized-bullmq).
 */
const FLUSH_MS = 50;
/** Maximum size of a batch, which Redis keeps in memory. A single response may be longer. */
const MAX_BATCH_CHARS = 256 * 1024;

/**
 * A stateless worker: takes jobs, polls each of their ids once and returns the responses. It polls
 * only jobs that have the current fencing token and have not expired, and never starts a job twice.
 */
export class PollWorker {
  readonly #deps: PollWorkerDeps;
  readonly #connection;
  readonly #redis;
  readonly #worker: Worker<unknown, PollResult>;
  readonly #tokens: FencingTokenStore;
  readonly #registry: WorkerRegistry;
  readonly #jobs = new Set<Promise<unknown>>();
  /** Expiry times of started jobs by id: a signed job that is added again is refused. */
  readonly #started = new Map<string, number>();
  /** `since`: when it was found, epoch ms. */
  #secretProblem: { kind: SignatureProblem; since: number; isReported: boolean } | undefined;
  #isStarted = false;
  #inFlight = 0;
  #isDraining = false;
  #isUp: boolean | undefined;
  /** The last message of Redis that denies a command. */
  #denied: string | undefined;
  #cancelTimer: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: PollWorkerDeps) {
    this.#deps = deps;
    const { redis, name, concurrency } = deps;
    this.#redis = openRedis(redis);
    this.#redis.on('error', (error) => this.#reportDisconnected(error.message));
    this.#tokens = new FencingTokenStore(this.#redis, redis);
    this.#registry = new WorkerRegistry(this.#redis, redis);
    this.#connection = openLoopConnection(redis);
    this.#worker = new Worker<unknown, PollResult>(POLLS_QUEUE, (job) => this.#run(job), {
      connection: this.#connection.redis,
      prefix: redis.prefix,
      name,
      concurrency,
      // Started when the secret of the server is verified.
      autorun: false,
      lockDuration: LOCK_MS,
      // A stalled job may have been polled: it fails, and the server polls its ids again after the
      // lease.
      maxStalledCount: 0,
      runRetryDelay: RETRY_MS,
      skipVersionCheck: true,
    });
    this.#worker.on('error', ({ message }) => this.#reportDenied(message));
    this.#redis.on('ready', () => this.#scheduleAnnouncement(0));
  }

  /**
   * Takes no more jobs and waits up to `limitMs` for requests in flight; later responses are
   * dropped. Idempotent.
   */
  close(limitMs: number): Promise<void> {
    this.#closing ??= this.#close(limitMs);
    return this.#closing;
  }

  async #close(limitMs: number): Promise<void> {
    this.#isDraining = true;
    this.#cancelTimer?.();
    // First, so that the server sends no more jobs.
    await withTimeout(UNREGISTER_WITHIN_MS, this.#registry.unregister(this.#deps.name));
    const closed = this.#worker.close();
    await withTimeout(limitMs, Promise.race([closed, Promise.allSettled(this.#jobs)]));
    // The responses are still to be sent, which may never end without Redis.
    await withTimeout(Math.min(limitMs, SEND_WITHIN_MS), closed);
    this.#connection.disconnect();
    disconnect(this.#redis);
  }

  #scheduleAnnouncement(delayMs: number): void {
    this.#cancelTimer?.();
    // The 'ready' event schedules the next announcement.
    if (this.#isDraining || this.#redis.status !== 'ready') return;
    this.#cancelTimer = this.#deps.clock.after(delayMs, async () => {
      const { name, version, concurrency, signer } = this.#deps;
      try {
        this.#verifySecret((await this.#tokens.read()).fencingToken);
        // Announced after `unregister`, the worker would get jobs that it does not take.
        if (this.#isDraining) return;
        await this.#registry.announce(
          { name, version, in_flight: this.#inFlight, concurrency },
          signer,
        );
        if (!this.#isUp) this.#deps.onEvent({ kind: 'connected' });
        this.#isUp = true;
      } catch (error) {
        this.#reportDisconnected(messageOf(error));
      }
      this.#scheduleAnnouncement(ANNOUNCE_MS);
    });
  }

  /**
   * Takes jobs while the worker knows the server's secret. Without a fencing token the state does
   * not change.
   */
  #verifySecret(token: string | undefined): void {
    if (this.#isDraining || (token === undefined && this.#secretProblem !== undefined)) return;
    const { signer, onEvent, clock } = this.#deps;
    const kind = token === undefined ? undefined : problemOfToken(token, signer);
    const before = this.#secretProblem;
    if (kind !== undefined) {
      const problem =
        before?.kind === kind ? before : { kind, since: clock.now(), isReported: false };
      this.#secretProblem = problem;
      if (before === undefined && this.#isStarted) void this.#worker.pause(true);
      if (problem.isReported || clock.now() - problem.since < MISMATCH_LASTS_MS) return;
      problem.isReported = true;
      onEvent({ kind: 'secret_mismatch', problem: kind });
      return;
    }
    this.#secretProblem = undefined;
    if (before?.isReported) onEvent({ kind: 'secret_matched' });
    if (!this.#isStarted) this.#worker.run().catch(() => undefined);
    else if (before !== undefined) void this.#worker.resume();
    this.#isStarted = true;
  }

  #reportDisconnected(detail: string): void {
    if (this.#isUp === false || this.#isDraining) return;
    this.#isUp = false;
    this.#deps.onEvent({ kind: 'disconnected', detail });
  }

  /**
   * Reports that a permission is missing: the worker is announced, but takes no jobs. Other errors
   * of its loop are those of the connection.
   */
  #reportDenied(message: string): void {
    if (message === this.#denied || !isDenial(message)) return;
    this.#denied = message;
    this.#deps.onEvent({ kind: 'disconnected', detail: message });
  }

  #run(job: Job<unknown, PollResult>): Promise<PollResult> {
    const processed = this.#process(job);
    const ended = processed.catch(() => undefined).finally(() => this.#jobs.delete(ended));
    this.#jobs.add(ended);
    return processed;
  }

  async #process(job: Job<unknown, PollResult>): Promise<PollResult> {
    const parsed = pollJobSchema.safeParse(job.data);
    if (!parsed.success) throw this.#refusal('the job has an invalid format');
    const poll = parsed.data;
    const jobId = job.id ?? '';
    const { signer, name: worker } = this.#deps;
    const problem = signer.problemOf('job', signedJob(jobId, poll), poll.signature);
    if (problem !== undefined) throw this.#refusal(REFUSED_SIGNATURE[problem]);
    const sign = (responses: PollResult): PollResult => {
      const result = { ...responses, worker };
      const signed = signedResult({ jobId, fencingToken: poll.fencing_token }, result);
      return { ...result, signature: signer.sign('result', signed) };
    };
    // The first worker may have polled, and the request budget covers one request per id.
    if (job.attemptsStarted > 1 || this.#started.has(jobId))
      throw this.#refusal('the job was already started');
    const reason = await this.#reasonNotToPoll(poll, jobId);
    if (reason !== undefined) {
      this.#deps.onEvent({ kind: 'returned', reason, upstream: poll.upstream });
      return sign({ polled: [], not_polled: reason });
    }
    const send = (polled: Polled[]) => job.updateProgress(sign({ polled }));
    return sign({ polled: await this.#pollAll(poll, send) });
  }

  async #reasonNotToPoll(
    { upstream, fencing_token, timeout_ms, expires_at }: PollJob,
    jobId: string,
  ): Promise<NotPolled | undefined> {
    const timeoutMs = this.#deps.timeoutMsOf(upstream);
    if (this.#isDraining) return 'drained';
    if (timeoutMs === undefined) return 'upstream';
    if (timeoutMs > timeout_ms) return 'timeout';
    let state: RedisState;
    let readAt: number;
    try {
      // This connection may be ready slightly later than the one that received the job.
      await waitUntilReady(this.#redis, READY_WITHIN_MS);
      readAt = performance.now();
      state = await this.#tokens.read();
    } catch {
      return 'redis';
    }
    // A job of another Redis process may have been polled; a job of this one was not, or it would
    // be started.
    if (!isIssuedBy(fencing_token, state.runId))
      throw this.#refusal('the job was created by another server');
    if (state.fencingToken === undefined) return 'emptied';
    if (state.fencingToken !== fencing_token)
      throw this.#refusal('the job was created by another server');
    // Redis read its clock after `readAt`, so its clock cannot show a later time than this now.
    const latestNow = state.redisMs + performance.now() - readAt;
    if (latestNow > expires_at - timeoutMs - START_MARGIN_MS) return 'late';
    if (this.#isDraining) return 'drained';
    for (const [id, expiresAt] of this.#started) {
      if (expiresAt >= state.redisMs) break;
      this.#started.delete(id);
    }
    if (this.#started.has(jobId)) throw this.#refusal('the job was already started');
    this.#started.set(jobId, expires_at);
    return undefined;
  }

  /**
   * Polls all ids, and sends the responses in batches, so that a slow request delays the others by
   * FLUSH_MS. Returns the last batch, and the responses that could not be sent.
   */
  async #pollAll(
    { upstream, submission_ids }: PollJob,
    send: (batch: Polled[]) => Promise<void>,
  ): Promise<Polled[]> {
    const { sendPoll, clock } = this.#deps;
    const unsent: Polled[] = [];
    const sending: Promise<void>[] = [];
    let batch: Polled[] = [];
    let chars = 0;
    let cancelFlush: (() => void) | undefined;
    const flush = () => {
      cancelFlush?.();
      cancelFlush = undefined;
      const sent = batch;
      batch = [];
      chars = 0;
      // It may have arrived nevertheless: the server accepts each id once.
      sending.push(send(sent).catch(() => void unsent.push(...sent)));
    };
    const polls = submission_ids.map(async (submissionId) => {
      this.#inFlight += 1;
      const sentAt = clock.now();
      const answer = await sendPoll(upstream, submissionId);
      this.#inFlight -= 1;
      const { length } = 'envelope' in answer ? answer.envelope : answer.error;
      if (batch.length > 0 && chars + length > MAX_BATCH_CHARS) flush();
      batch.push({ submission_id: submissionId, duration_ms: clock.now() - sentAt, answer });
      chars += length;
      cancelFlush ??= clock.after(FLUSH_MS, flush);
    });
    await Promise.all(polls);
    cancelFlush?.();
    await Promise.all(sending);
    return [...unsent, ...batch];
  }

  #refusal(reason: string): UnrecoverableError {
    this.#deps.onEvent({ kind: 'refused', reason });
    return new UnrecoverableError(reason);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Why a worker returned a job without polling, and how to resolve it. */
const RETURNED = {
  drained: 'the worker is stopping',
  upstream: 'this worker has no upstream of that name: add it to its upstreams',
  timeout:
    'timeout_s of this upstream is longer on the worker than on the server: set the same value',
  late: 'the job arrived too late to be polled in time: start more workers, or check Redis',
  redis: 'Redis did not respond',
  emptied: 'the data in Redis was deleted',
} as const;

/** Why a worker takes no jobs of its server. */
const SECRET_MISMATCH = {
  unsigned: 'the server has no redis.secret, and this worker has one',
  no_secret: 'the server has a redis.secret, and this worker has none',
  other_secret: 'the server has another redis.secret',
} as const satisfies Record<SignatureProblem, string>;

/** Returns a listener that logs the state of Redis and the jobs of `dawatch worker`. */
export function logWorker(log: Log): (event: PollWorkerEvent) => void {
  return (event) => {
    switch (event.kind) {
      case 'connected':
        return log.info('redis.connected');
      case 'disconnected':
        return log.error(
          { message: escapeText(event.detail), advice: 'the worker reconnects indefinitely' },
          'redis.disconnected',
        );
      case 'returned':
        return log.warn(
          { upstream: event.upstream, reason: RETURNED[event.reason] },
          'polls.returned',
        );
      case 'refused':
        return log.warn({ reason: event.reason }, 'polls.refused');
      case 'secret_mismatch': {
        const advice =
          'set the same redis.secret on this worker and on the server; until then this worker takes no jobs';
        return log.error(
          { reason: SECRET_MISMATCH[event.problem], advice },
          'worker.secret_mismatch',
        );
      }
      case 'secret_matched':
        return log.info('worker.secret_matched');
      default:
        return event satisfies never;
    }
  };
}
