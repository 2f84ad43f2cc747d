import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { logOf } from '../http/typed-server.ts';
import { isLocked, LedgerError, LOCKED_MS } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { SubmissionSettings } from './settings.ts';
import type { TrackEffect, TrackedSubmission, TrackResult } from './store-results.ts';
import type { TrackOption, TrackRequest } from './submission.ts';
import type { SubmissionStore } from './submission-store.ts';
import {
  MAX_IDS_PER_REQUEST,
  type TrackBody,
  type TrackContext,
  type TrackRequests,
  toTrackRequests,
} from './track-request.ts';

type QueuedRequest = {
  queuedAt: number;
  requests: readonly TrackRequest[];
  resolve: (result: TrackResult) => void;
  reject: (error: unknown) => void;
};

/** Limit of the ids that wait for a commit: some seconds of a slow disk. */
const MAX_WAITING_IDS = 50_000;

/** `reason`: what the tracked submission has instead. */
type Conflict = { kind: 'conflict'; submissionId: string; field: string; reason: string };

/** `field`: place of the cause in the body, as a JSON pointer without its first slash. */
export type TrackRequestResult =
  | Exclude<TrackResult, { kind: 'conflict' | 'late' }>
  | Conflict
  | { kind: 'invalid'; field: string; reason: string };

/** Without `stuck_after_s` in the request: ten times as long as finality usually takes. */
const STUCK_AFTER_MS = 600_000;

/**
 * Requests of one turn of the event loop share a commit of at most a thousand ids. Other work runs
 * between two commits.
 */
export class Intake {
  readonly #store: Pick<SubmissionStore, 'track'>;
  readonly #clock: Clock;
  readonly #context: Omit<TrackContext, 'now'>;
  #queue: QueuedRequest[] = [];
  #waitingIds = 0;
  #isScheduled = false;

  constructor(deps: {
    config: SubmissionSettings;
    store: Pick<SubmissionStore, 'track'>;
    clock: Clock;
    hasUpstream: (name: string) => boolean;
    refusalOf: (url: string) => string | undefined;
  }) {
    const { deadline_s, unknown_grace_s } = deps.config.submissions;
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#context = {
      defaults: {
        deadlineMs: deadline_s * 1_000,
        unknownGraceMs: unknown_grace_s * 1_000,
        stuckAfterMs: STUCK_AFTER_MS,
      },
      hasUpstream: deps.hasUpstream,
      refusalOf: deps.refusalOf,
    };
  }

  get waitingIds(): number {
    return this.#waitingIds;
  }

  isFull(): boolean {
    return this.#waitingIds >= MAX_WAITING_IDS;
  }

  /**
   * Tracks all submissions of a request, durably, or none; undefined: too many ids wait already.
   * Rejects with LedgerError.
   */
  async track(body: TrackBody): Promise<TrackRequestResult | undefined> {
    const context = { ...this.#context, now: this.#clock.now() };
    const valid = toTrackRequests(body, context);
    if (valid.kind === 'invalid') return valid;
    const ids = valid.requests.length;
    if (this.#waitingIds + ids > MAX_WAITING_IDS) return undefined;
    this.#waitingIds += ids;
    try {
      return trackResultOf(valid, await this.#enqueue(valid.requests));
    } finally {
      this.#waitingIds -= ids;
    }
  }

  #enqueue(requests: readonly TrackRequest[]): Promise<TrackResult> {
    const { promise, resolve, reject } = Promise.withResolvers<TrackResult>();
    this.#queue.push({ queuedAt: this.#clock.elapsed(), requests, resolve, reject });
    this.#schedule();
    return promise;
  }

  /** `delayMs`: the pause before another attempt; absent: in this turn of the event loop. */
  #schedule(delayMs?: number): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    const run = () => {
      this.#isScheduled = false;
      this.#schedule(this.#commit(this.#nextBatch()));
    };
    if (delayMs === undefined) setImmediate(run);
    else this.#clock.after(delayMs, run);
  }

  #nextBatch(): QueuedRequest[] {
    let ids = 0;
    const end = this.#queue.findIndex(({ requests }) => {
      ids += requests.length;
      return ids > MAX_IDS_PER_REQUEST;
    });
    return this.#queue.splice(0, end < 0 ? this.#queue.length : end);
  }

  /**
   * Commits and resolves requests. Returns the pause before a retry if another program locks the
   * ledger.
   */
  #commit(batch: readonly QueuedRequest[]): number | undefined {
    let results: TrackResult[];
    try {
      const groups = batch.map(({ requests }) => requests);
      results = this.#store.track(groups, this.#clock.now());
    } catch (error) {
      const [first] = batch;
      if (first && isLocked(error) && this.#clock.elapsed() - first.queuedAt <= LOCKED_MS.total) {
        this.#queue.unshift(...batch);
        return LOCKED_MS.rest;
      }
      // Each request alone, so that one failure affects no other. An unavailable ledger fails all.
      if (batch.length > 1 && !(error instanceof LedgerError))
        for (const one of batch) this.#commit([one]);
      else for (const { reject } of batch) reject(error);
      return undefined;
    }
    for (const [index, { resolve }] of batch.entries()) resolve(results[index] as TrackResult);
    return undefined;
  }
}

/** Returns the result for a client: a refusal names the place of its cause in the body. */
function trackResultOf(
  { fieldOf }: Extract<TrackRequests, { kind: 'requests' }>,
  result: TrackResult,
): TrackRequestResult {
  switch (result.kind) {
    case 'tracked':
      return result;
    case 'conflict': {
      const { kind, index, option, submission } = result;
      const { submissionId, upstream, dataHash } = submission;
      const [field, reason] =
        option === 'upstream'
          ? (['submission_id', `is already tracked at the upstream ${upstream}`] as const)
          : (['data_hash', `is already tracked with the data_hash ${dataHash}`] as const);
      return { kind, submissionId, field: fieldOf(index, field), reason };
    }
    case 'late': {
      const reason = 'the deadline is not in the future';
      return { kind: 'invalid', field: fieldOf(result.index, 'deadline'), reason };
    }
    default:
      return result satisfies never;
  }
}

export type TrackSummary = Record<TrackEffect, number> & { kept_options: TrackOption[] };

export function summaryOf(submissions: readonly TrackedSubmission[]): TrackSummary {
  const counts = { accepted: 0, already_tracked: 0, already_final: 0, retracked: 0 };
  for (const { effect } of submissions) counts[effect] += 1;
  return { ...counts, kept_options: [...new Set(submissions.flatMap(({ kept = [] }) => kept))] };
}

export type ShedReason = 'tracking' | 'held_open';

/** Memory of a request besides its body. */
const REQUEST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

type AdmissionDeps = {
  intake: Intake;
  maxHeldOpen: number;
  onShed: (reason: ShedReason) => void;
};

/**
 * Requests that cannot be served soon get 503 and Retry-After, before their bodies are read if
 * possible.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  /** Bytes of bodies being received, and of requests that wait. */
  #bodyBytes = 0;
  #heldOpen = 0;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /** preParsing hook: refuses by the declared length, and counts the body as it is received. */
  readonly admitBody = (
    request: FastifyRequest,
    reply: FastifyReply,
    _body: unknown,
    done: () => void,
  ): void => {
    // A longer body is refused by its limit.
    const declared = Math.min(
      request.routeOptions.bodyLimit,
      Number(request.headers['content-length'] ?? 0),
    );
    if (!this.#mayReceive(REQUEST_BYTES + declared) || this.#deps.intake.isFull()) {
      this.shed('tracking', request, reply);
      return;
    }
    let bytes = REQUEST_BYTES;
    this.#bodyBytes += bytes;
    reply.raw.once('close', () => {
      this.#bodyBytes -= bytes;
      bytes = 0;
    });
    request.raw.on('data', ({ length }: Buffer) => {
      if (reply.sent) return;
      if (this.#mayReceive(length)) {
        bytes += length;
        this.#bodyBytes += length;
      } else this.shed('tracking', request, reply.header('connection', 'close'));
    });
    done();
  };

  /** Limits the requests of routes with `staysOpen`. */
  boundHeldOpen(app: FastifyInstance): void {
    app.addHook('preHandler', (request, reply, done) => {
      if (!request.routeOptions.config?.staysOpen) {
        done();
        return;
      }
      if (this.#heldOpen >= this.#deps.maxHeldOpen) {
        this.shed('held_open', request, reply);
        return;
      }
      this.#heldOpen += 1;
      reply.raw.once('close', () => {
        this.#heldOpen -= 1;
      });
      done();
    });
  }

  shed(reason: ShedReason, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const retryAfterS = RETRY_AFTER_S[reason];
    this.#deps.onShed(reason);
    logOf(request).warn({ reason, waiting_ids: this.#deps.intake.waitingIds }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const detail =
      reason === 'tracking'
        ? 'too many ids are waiting: nothing of the request was accepted'
        : 'too many requests are held open';
    return sendProblem(reply, 503, `${detail}; try again in ${retryAfterS} s`);
  }

  #mayReceive(bytes: number): boolean {
    return this.#bodyBytes + bytes <= MAX_BODY_BYTES;
  }
}
