import { performance } from 'node:perf_hooks';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { logOf } from '../http/request-log.ts';
import { LedgerUnavailableError } from '../ledger/errors.ts';
import { isLocked, LOCKED_MS } from '../ledger/locked.ts';
import type { TrackRefusal, TrackResult } from './ports.ts';
import type { TrackRequest } from './submission.ts';
import { MAX_COMMIT_IDS, type TrackingSteps, trackInParts } from './tracker.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the accounting of the body. Idempotent. */
    bodyDone?: (() => void) | undefined;
    /** Accounts for received bytes of the body. */
    bodyGrew?: ((bytes: number) => void) | undefined;
  }
}

/** The commits of the watcher; see SubmissionWatcher. */
type Commits = {
  track(requests: readonly TrackRequest[]): TrackResult;
  trackGroups(groups: readonly (readonly TrackRequest[])[]): TrackResult[];
  refusalOf(requests: readonly TrackRequest[]): TrackRefusal | undefined;
};

/** `steps`: a large request takes several turns; see trackInParts. */
type QueuedRequest = {
  /** By the monotonic clock, in milliseconds. */
  queuedAt: number;
  requests: readonly TrackRequest[];
  steps: TrackingSteps | undefined;
  resolve: (result: TrackResult) => void;
  reject: (error: unknown) => void;
};

/** Limit of the ids that wait for a commit: some seconds of a slow disk. */
const MAX_WAITING_IDS = 50_000;
/** Share of a commit's duration that other work gets after it. */
const REST = 0.25;
const MIN_REST_MS = 5;

/**
 * The tracking requests that wait for a commit.
 *
 * Committing ten thousand ids takes a large part of a second, in which nothing else could run.
 * Requests are therefore committed in turns of at most a thousand ids, and other work (polls,
 * deliveries, health checks) runs between two turns. A large request takes several turns, with
 * other requests in between. Small requests share one, because a commit costs more than the few ids
 * in it.
 */
export class TrackingQueue {
  readonly #watcher: Commits;
  /** In the order of their next turns. */
  #queue: QueuedRequest[] = [];
  #waitingIds = 0;
  #isBusy = false;
  /** Whether the last turn found the ledger locked. */
  #isLocked = false;

  constructor(deps: { watcher: Commits }) {
    this.#watcher = deps.watcher;
  }

  /** Ids that wait for a commit. */
  get waitingIds(): number {
    return this.#waitingIds;
  }

  /** Whether a request would be refused, however small it is. */
  isFull(): boolean {
    return this.#waitingIds >= MAX_WAITING_IDS;
  }

  /**
   * Queues a valid request. Resolves with the result of its commit, or with undefined if too many
   * ids wait already. Rejects if it cannot be committed.
   */
  async take(requests: readonly TrackRequest[]): Promise<TrackResult | undefined> {
    const ids = requests.length;
    if (this.#waitingIds + ids > MAX_WAITING_IDS) return undefined;
    this.#waitingIds += ids;
    const { promise, resolve, reject } = Promise.withResolvers<TrackResult>();
    const steps = ids > MAX_COMMIT_IDS ? trackInParts(this.#watcher, requests) : undefined;
    this.#queue.push({ queuedAt: performance.now(), requests, steps, resolve, reject });
    if (!this.#isBusy) this.#takeTurn();
    try {
      return await promise;
    } finally {
      this.#waitingIds -= ids;
    }
  }

  /** Takes the next turn, lets other work run, and continues. */
  #takeTurn(): void {
    const [next] = this.#queue;
    this.#isBusy = next !== undefined;
    if (!next) return;
    const from = performance.now();
    this.#isLocked = false;
    if (next.steps) this.#takeStep(next, next.steps);
    else this.#commitBatch();
    const restMs = this.#isLocked ? LOCKED_MS.rest : (performance.now() - from) * REST;
    const resume = () => this.#takeTurn();
    const rest = () => {
      if (restMs < MIN_REST_MS || this.#queue.length === 0) resume();
      else setTimeout(resume, restMs);
    };
    // Three iterations: requests that arrived meanwhile are read in the next one and served at its
    // end.
    setImmediate(() => setImmediate(() => setImmediate(rest)));
  }

  /** Takes the next step of a large request, whose next turn is after all others. */
  #takeStep(request: QueuedRequest, steps: TrackingSteps): void {
    this.#queue.shift();
    try {
      const { done, value } = steps.next();
      if (done) request.resolve(value);
      else this.#queue.push(request);
    } catch (error) {
      request.reject(error);
    }
  }

  /** Commits the next small requests together. */
  #commitBatch(): void {
    let ids = 0;
    const end = this.#queue.findIndex(({ steps, requests }) => {
      ids += requests.length;
      return steps !== undefined || ids > MAX_COMMIT_IDS;
    });
    const batch = this.#queue.splice(0, end < 0 ? this.#queue.length : end);
    this.#commit(batch);
  }

  /** Commits requests in one transaction, and settles them. */
  #commit(batch: readonly QueuedRequest[]): void {
    let results: TrackResult[];
    try {
      results = this.#watcher.trackGroups(batch.map(({ requests }) => requests));
    } catch (error) {
      const [first] = batch;
      if (first && isLocked(error) && !isOverdue(first)) {
        this.#isLocked = true;
        this.#queue.unshift(...batch);
        return;
      }
      // Each request is repeated alone, so that one failing request does not fail the others. An
      // unavailable ledger fails all of them, and repeating each could take as long again.
      if (batch.length > 1 && !(error instanceof LedgerUnavailableError))
        for (const one of batch) this.#commit([one]);
      else for (const { reject } of batch) reject(error);
      return;
    }
    for (const [index, { resolve }] of batch.entries()) resolve(results[index] as TrackResult);
  }
}

function isOverdue({ queuedAt }: QueuedRequest): boolean {
  return performance.now() - queuedAt > LOCKED_MS.total;
}

/** The exhausted resource. */
export type ShedReason = 'tracking' | 'held_open';

/** Memory of a request besides its body. */
const REQUEST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

type AdmissionDeps = {
  queue: TrackingQueue;
  maxHeldOpen: number;
  onShed: (reason: ShedReason) => void;
};

/**
 * Admission control for tracking requests and for requests held open. Requests that cannot be
 * served soon are refused with 503 and Retry-After, before their bodies are read if possible.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  /** Bytes of bodies being received, and of requests that wait. */
  #bodyBytes = 0;
  #heldOpen = 0;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /**
   * preParsing hook of tracking requests: refuses a request before its body is read, by its
   * declared length, and accounts for the body as it is received, whatever length was declared.
   */
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
    if (!this.#mayReceive(REQUEST_BYTES + declared) || this.#deps.queue.isFull()) {
      this.shed('tracking', request, reply);
      return;
    }
    let bytes = REQUEST_BYTES;
    this.#bodyBytes += bytes;
    request.bodyGrew = (more) => {
      bytes += more;
      this.#bodyBytes += more;
    };
    request.bodyDone = () => {
      this.#bodyBytes -= bytes;
      bytes = 0;
      request.bodyGrew = undefined;
    };
    reply.raw.once('close', request.bodyDone);
    request.raw.on('data', ({ length }: Buffer) => {
      if (reply.sent) return;
      if (this.#mayReceive(length)) request.bodyGrew?.(length);
      else this.shed('tracking', request, reply.header('connection', 'close'));
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
    logOf(request).warn({ reason, waiting_ids: this.#deps.queue.waitingIds }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const detail =
      reason === 'tracking'
        ? 'too many ids are waiting: nothing of the request was accepted'
        : 'too many requests are held open';
    return sendProblem(reply, { status: 503, detail: `${detail}; try again in ${retryAfterS} s` });
  }

  #mayReceive(bytes: number): boolean {
    return this.#bodyBytes + bytes <= MAX_BODY_BYTES;
  }
}
