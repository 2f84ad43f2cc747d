import { performance } from 'node:perf_hooks';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { logOf } from '../http/request-log.ts';
import { isLocked, LedgerUnavailableError, LOCKED_MS } from '../ledger/errors.ts';
import type { TrackResult } from './ports.ts';
import type { TrackRequest } from './submission.ts';
import { MAX_IDS_PER_REQUEST } from './track-request.ts';

/** The commits of the watcher; see SubmissionWatcher. */
type Commits = {
  trackGroups(groups: readonly (readonly TrackRequest[])[]): TrackResult[];
};

type QueuedRequest = {
  /** By the monotonic clock, in milliseconds. */
  queuedAt: number;
  requests: readonly TrackRequest[];
  resolve: (result: TrackResult) => void;
  reject: (error: unknown) => void;
};

/** Limit of the ids that wait for a commit: some seconds of a slow disk. */
const MAX_WAITING_IDS = 50_000;

/**
 * The tracking requests that wait for a commit. Those that arrive in one turn of the event loop
 * share one, of at most a thousand ids, because a commit costs more than the few ids in it. Other
 * work runs between two commits.
 */
export class TrackingQueue {
  readonly #watcher: Commits;
  #queue: QueuedRequest[] = [];
  #waitingIds = 0;
  #isScheduled = false;

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
    this.#queue.push({ queuedAt: performance.now(), requests, resolve, reject });
    this.#schedule();
    try {
      return await promise;
    } finally {
      this.#waitingIds -= ids;
    }
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
    else setTimeout(run, delayMs);
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
   * Commits requests in one transaction, and resolves them. Returns the pause before the next
   * attempt if another program has locked the ledger.
   */
  #commit(batch: readonly QueuedRequest[]): number | undefined {
    let results: TrackResult[];
    try {
      results = this.#watcher.trackGroups(batch.map(({ requests }) => requests));
    } catch (error) {
      const [first] = batch;
      if (first && isLocked(error) && !isOverdue(first)) {
        this.#queue.unshift(...batch);
        return LOCKED_MS.rest;
      }
      // Each request is repeated alone, so that one failing request does not fail the others. An
      // unavailable ledger fails all of them, and repeating each could take as long again.
      if (batch.length > 1 && !(error instanceof LedgerUnavailableError))
        for (const one of batch) this.#commit([one]);
      else for (const { reject } of batch) reject(error);
      return undefined;
    }
    for (const [index, { resolve }] of batch.entries()) resolve(results[index] as TrackResult);
    return undefined;
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
