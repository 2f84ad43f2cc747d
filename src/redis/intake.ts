import { DelayedError, type Job, UnrecoverableError, Worker } from 'bullmq';
import { type ZodError, z } from 'zod';
import { withTimeout } from '../lib/clock.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { escapeText } from '../lib/text.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import { summaryOf, type TrackRequestResult, type TrackSummary } from '../submissions/intake.ts';
import { type TrackBody, trackBodySchema } from '../submissions/track-request.ts';
import { openLoopRedis, type RedisSettings, SUBMISSIONS_QUEUE } from './connections.ts';

type IntakeDeps = {
  redis: RedisSettings;
  /** See Intake. */
  track: (body: TrackBody) => Promise<TrackRequestResult | undefined>;
  log: Log;
};

const CONCURRENCY = 8;
const RETRY_MS = 1_000;
const MAX_DELAY_MS = 60_000;
/** A job of a crashed server is resumed after this, checked every STALLED_CHECK_MS. */
const LOCK_MS = 10_000;
const STALLED_CHECK_MS = 5_000;
/** Jobs take no time; closing takes longer only if Redis does not respond. */
const CLOSE_WITHIN_MS = 2_000;
const DAY_S = 86_400;
/** Producers can read the results of their jobs for this long. */
const RETENTION = {
  removeOnComplete: { age: 3 * DAY_S, count: 10_000 },
  removeOnFail: { age: 14 * DAY_S, count: 10_000 },
};
/** BullMQ never resets this counter: with a limit, so many crashes would fail a job. */
const UNLIMITED = 1_000_000_000;

/**
 * Completes a job once its submissions are on the disk; retries until the ledger can be written.
 */
export class IntakeWorker {
  readonly #deps: IntakeDeps;
  readonly #connection;
  readonly #worker: Worker<unknown, TrackSummary>;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#connection = openLoopRedis(deps.redis);
    this.#worker = new Worker<unknown, TrackSummary>(
      SUBMISSIONS_QUEUE,
      (job, token) => this.#process(job, token),
      {
        connection: this.#connection.redis,
        concurrency: CONCURRENCY,
        lockDuration: LOCK_MS,
        stalledInterval: STALLED_CHECK_MS,
        maxStalledCount: UNLIMITED,
        runRetryDelay: RETRY_MS,
        skipVersionCheck: true,
        ...RETENTION,
      },
    );
    this.#worker.on('error', () => undefined);
  }

  /** Takes no more jobs. Unfinished jobs are resumed by the next server. */
  async close(limitMs: number): Promise<void> {
    await withTimeout(Math.min(limitMs, CLOSE_WITHIN_MS), this.#worker.close());
    this.#connection.close();
  }

  async #process(
    job: Job<unknown, TrackSummary>,
    token: string | undefined,
  ): Promise<TrackSummary> {
    const body = trackBodySchema.safeParse(job.data, { error: explainIssue });
    if (!body.success) throw this.#refusal(job, explain(body.error));
    let result: TrackRequestResult | undefined;
    try {
      result = await this.#deps.track(body.data);
    } catch (error) {
      throw await this.#postponed(job, token, error);
    }
    if (!result) throw await this.#postponed(job, token, new Error('too many ids are waiting'));
    switch (result.kind) {
      case 'tracked':
        return summaryOf(result.submissions);
      case 'invalid':
        throw this.#refusal(job, `${result.field}: ${result.reason}`);
      case 'conflict': {
        const { submissionId, reason } = result;
        throw this.#refusal(job, `${submissionId} ${reason}; nothing was accepted`);
      }
      default:
        return result satisfies never;
    }
  }

  /** Delays the job. A delay does not count as one of the attempts that the producer configured. */
  async #postponed(job: Job, token: string | undefined, error: unknown): Promise<DelayedError> {
    const delayMs = Math.min(RETRY_MS * 2 ** Math.max(0, job.attemptsStarted - 1), MAX_DELAY_MS);
    this.#deps.log.error(
      { job_id: job.id, retry_after_ms: delayMs, err: error },
      'intake.postponed',
    );
    await job.moveToDelayed(Date.now() + delayMs, token);
    return new DelayedError();
  }

  #refusal(job: Job, reason: string): UnrecoverableError {
    this.#deps.log.warn({ job_id: job.id, reason: escapeText(reason) }, 'intake.refused');
    return new UnrecoverableError(reason);
  }
}

const MAX_ISSUES = 5;
/** Redis keeps the reason for two weeks, and an issue may quote all names of the data. */
const MAX_REASON_CHARS = 1_000;

function explain(error: ZodError): string {
  const lines = z.prettifyError({ issues: error.issues.slice(0, MAX_ISSUES) }).split('\n');
  const found = escapeText(lines.map((line) => line.trim()).join(' '), MAX_REASON_CHARS);
  return `the job data must be a request body of POST /v1/submissions: ${found}`;
}
