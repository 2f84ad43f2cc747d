import { type Job, UnrecoverableError, Worker } from 'bullmq';
import { classify } from '../monitor/classify.ts';
import type { Clock } from '../monitor/ports.ts';
import { Epoch, isOfRedis, type Moment } from './epoch.ts';
import type { AskUpstream } from './local.ts';
import {
  type Answered,
  type NotAsked,
  POLLS_QUEUE,
  type PollJob,
  type PollResult,
  pollJobSchema,
  START_MARGIN_MS,
} from './poll-job.ts';
import { becomesReady, end, openLoopConnection, openRedis, type RedisSettings, within } from './redis.ts';
import { ANNOUNCE_MS, WorkerRegister } from './worker-register.ts';

export type PollWorkerEvent =
  | { kind: 'up' }
  /** `detail`: what Redis or the network said last. */
  | { kind: 'away'; detail: string }
  | { kind: 'returned'; reason: NotAsked; upstream: string }
  | { kind: 'refused'; reason: string };

type PollWorkerDeps = {
  redis: RedisSettings;
  /** Unlike that of any other worker. */
  name: string;
  version: string;
  /** Jobs at once. */
  concurrency: number;
  clock: Clock;
  ask: AskUpstream;
  /** How long a request to that upstream may take here; undefined: there is none of that name. */
  timeoutMsOf: (upstream: string) => number | undefined;
  onEvent: (event: PollWorkerEvent) => void;
};

/** Answers are sent so soon after they came: one that hangs delays no other of its job. */
const FLUSH_MS = 50;
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
  readonly #epoch: Epoch;
  readonly #register: WorkerRegister;
  readonly #jobs = new Set<Promise<unknown>>();
  #inFlight = 0;
  #isDraining = false;
  #isUp: boolean | undefined;
  #cancelTimer: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(deps: PollWorkerDeps) {
    this.#deps = deps;
    const { redis, name, concurrency } = deps;
    this.#redis = openRedis(redis.url);
    this.#redis.on('error', (error) => this.#tellAway(error.message));
    this.#epoch = new Epoch(this.#redis, redis);
    this.#register = new WorkerRegister(this.#redis, redis);
    this.#connection = openLoopConnection(redis.url);
    this.#worker = new Worker<unknown, PollResult>(POLLS_QUEUE, (job) => this.#begin(job), {
      connection: this.#connection.redis,
      prefix: redis.prefix,
      name,
      concurrency,
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
    await within(LEAVE_WITHIN_MS, this.#register.leave(this.#deps.name));
    const closed = this.#worker.close();
    await within(limitMs, Promise.race([closed, Promise.allSettled(this.#jobs)]));
    // Its answers are still to be sent; without Redis that may take for ever.
    await within(Math.min(limitMs, SETTLE_WITHIN_MS), closed);
    this.#connection.disconnect();
    end(this.#redis);
  }

  #announceSoon(delayMs: number): void {
    this.#cancelTimer?.();
    // Once it is there again, 'ready' goes on.
    if (this.#isDraining || this.#redis.status !== 'ready') return;
    this.#cancelTimer = this.#deps.clock.after(delayMs, async () => {
      const { name, version, concurrency } = this.#deps;
      try {
        await this.#register.announce({ name, version, in_flight: this.#inFlight, concurrency });
        if (!this.#isUp) this.#deps.onEvent({ kind: 'up' });
        this.#isUp = true;
      } catch (error) {
        this.#tellAway(messageOf(error));
      }
      this.#announceSoon(ANNOUNCE_MS);
    });
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
    // Its first worker may have asked, and the budget has one place for each id.
    if (job.attemptsStarted > 1) throw this.#refusal('it was begun before');
    const reason = await this.#reasonNotToAsk(parsed.data);
    if (reason !== undefined) {
      this.#deps.onEvent({ kind: 'returned', reason, upstream: parsed.data.upstream });
      return { answers: [], not_asked: reason };
    }
    return { answers: await this.#askAll(parsed.data, job) };
  }

  async #reasonNotToAsk({ upstream, epoch, timeout_ms, expires_at }: PollJob): Promise<NotAsked | undefined> {
    const timeoutMs = this.#deps.timeoutMsOf(upstream);
    if (this.#isDraining) return 'drained';
    if (timeoutMs === undefined) return 'upstream';
    if (timeoutMs > timeout_ms) return 'timeout';
    let moment: Moment;
    let lookedAt: number;
    try {
      // It may come back a little later than the connection that brought the job.
      await becomesReady(this.#redis, READY_WITHIN_MS);
      lookedAt = performance.now();
      moment = await this.#epoch.look();
    } catch {
      return 'redis';
    }
    // Of a Redis before this one it may have been asked; of this very one it was not, or it would have been begun.
    if (!isOfRedis(epoch, moment.runId)) throw this.#refusal('another server handed it out');
    if (moment.epoch === undefined) return 'emptied';
    if (moment.epoch !== epoch) throw this.#refusal('another server handed it out');
    // The clock of Redis was read after the question left: by now it can't show more than that.
    const latestNow = moment.redisMs + performance.now() - lookedAt;
    if (latestNow > expires_at - timeoutMs - START_MARGIN_MS) return 'late';
    return this.#isDraining ? 'drained' : undefined;
  }

  /** Gives back what was not sent already while the job ran. */
  async #askAll({ upstream, submission_ids }: PollJob, job: Job): Promise<Answered[]> {
    const { ask, clock } = this.#deps;
    let answers: Answered[] = [];
    let left = submission_ids.length;
    let cancelFlush: (() => void) | undefined;
    let flushing: Promise<void> | undefined;
    const flush = async () => {
      const sent = answers;
      answers = [];
      // The same ones twice do no harm: the server takes each id once.
      await job.updateProgress({ answers: sent }).catch(() => answers.push(...sent));
      flushing = undefined;
      flushSoon();
    };
    const flushSoon = () => {
      if (left === 0 || flushing || cancelFlush || answers.length === 0) return;
      cancelFlush = clock.after(FLUSH_MS, () => {
        cancelFlush = undefined;
        if (left > 0) flushing = flush();
      });
    };
    await Promise.all(
      submission_ids.map(async (submissionId) => {
        this.#inFlight += 1;
        const askedAt = clock.now();
        const answer = await ask(upstream, submissionId);
        this.#inFlight -= 1;
        left -= 1;
        const verdict = classify(submissionId, answer);
        answers.push({ submission_id: submissionId, duration_ms: clock.now() - askedAt, verdict });
        flushSoon();
      }),
    );
    (cancelFlush as (() => void) | undefined)?.();
    await flushing;
    return answers;
  }

  #refusal(reason: string): UnrecoverableError {
    this.#deps.onEvent({ kind: 'refused', reason });
    return new UnrecoverableError(reason);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
