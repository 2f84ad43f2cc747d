import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { sendProblem } from './problems.ts';
import { logOf } from './request-log.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Its body is no longer counted among those that are read or wait. Idempotent. */
    bodyDone?: () => void;
  }
}

/** What there is too much of. */
export type Shed = 'tracking' | 'held_open';

export type AdmissionDeps = {
  /** So long may ids wait for the ledger, as it is estimated. */
  maxWaitMs: number;
  /** Requests that may be held open. */
  maxHeldOpen: number;
  onShed: (what: Shed) => void;
  /** Calls `run` once everything else had its turn, and had so long for it. */
  defer?: (run: () => void, restMs: number) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/** What a request weighs besides its body. */
const LEAST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** What a turn costs besides its ids, in ids: else a stream of single ones would make large batches look endless. */
const TURN_IDS = 20;
/** Until there was a turn: a slow disk. */
const FIRST_PACE = { ids: 1_000, ms: 100 };
const MEMORY = 0.9;
/** After a long turn others get this share of its time: bodies and answers come and go in many small steps. */
const REST = 0.25;
const LEAST_REST_MS = 5;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

/**
 * Takes no more than can be served soon, and says so to the rest: 503 with Retry-After, best before a body is read.
 *
 * Committing ten thousand ids takes a good part of a second, in which nothing else runs. So tracking requests stand in
 * line, and between two of them everything else has its turn: answers of the upstream, deliveries, probes of the process.
 */
export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #defer: (run: () => void, restMs: number) => void;
  readonly #now: () => number;
  readonly #line: { ids: number; begin: () => void }[] = [];
  #bodyBytes = 0;
  #waitingIds = 0;
  #heldOpen = 0;
  #isTaken = false;
  /** What the last turns took, the newer the more it counts. */
  #pace = { ...FIRST_PACE };

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    this.#defer = deps.defer ?? afterOthers;
    this.#now = deps.now ?? (() => performance.now());
  }

  get waitingIds(): number {
    return this.#waitingIds;
  }

  /** A hook of tracking requests, before their bodies are read. */
  async beforeBody(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { bodyLimit } = request.routeOptions;
    // What is longer is refused as soon as it is looked at.
    const bytes = LEAST_BYTES + Math.min(bodyLimit, Number(request.headers['content-length'] ?? bodyLimit));
    const isFull = this.#bodyBytes > 0 && this.#bodyBytes + bytes > MAX_BODY_BYTES;
    if (isFull || this.#waitMs(0) >= this.#deps.maxWaitMs) return this.shed('tracking', request, reply);
    this.#bodyBytes += bytes;
    let isDone = false;
    request.bodyDone = () => {
      if (!isDone) this.#bodyBytes -= bytes;
      isDone = true;
    };
    reply.raw.once('close', request.bodyDone);
    return undefined;
  }

  /** Resolves when it is the turn of these ids: what follows at once is the turn. False: too many wait already. */
  async turn(ids: number): Promise<boolean> {
    if (!this.#isTaken) {
      this.#take(ids);
      return true;
    }
    if (this.#waitingIds > 0 && this.#waitMs(ids + TURN_IDS) > this.#deps.maxWaitMs) return false;
    this.#waitingIds += ids;
    await new Promise<void>((begin) => this.#line.push({ ids, begin }));
    this.#waitingIds -= ids;
    return true;
  }

  /** Bounds the requests of these routes that are held open on purpose. */
  boundHeldOpen(app: FastifyInstance): void {
    app.addHook('onRequest', async (request, reply): Promise<FastifyReply | undefined> => {
      if (!request.routeOptions.config?.staysOpen) return undefined;
      if (this.#heldOpen >= this.#deps.maxHeldOpen) return this.shed('held_open', request, reply);
      this.#heldOpen += 1;
      reply.raw.once('close', () => {
        this.#heldOpen -= 1;
      });
      return undefined;
    });
  }

  shed(what: Shed, request: { log: FastifyBaseLogger }, reply: FastifyReply): FastifyReply {
    const retryAfterS = RETRY_AFTER_S[what];
    this.#deps.onShed(what);
    logOf(request).warn({ reason: what, waiting_ids: this.#waitingIds }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const reason =
      what === 'tracking'
        ? 'too many ids wait to be taken: nothing of the request was'
        : 'too many requests are held open';
    return sendProblem(reply, { status: 503, detail: `${reason}; try again in ${retryAfterS} s` });
  }

  /** How long those in line take, and so many ids after them. */
  #waitMs(ids: number): number {
    return ((this.#waitingIds + TURN_IDS * this.#line.length + ids) * this.#pace.ms) / this.#pace.ids;
  }

  #take(ids: number): void {
    this.#isTaken = true;
    const from = this.#now();
    this.#defer(() => {
      const restMs = (this.#now() - from) * REST;
      if (restMs < LEAST_REST_MS || this.#line.length === 0) this.#next(ids, from);
      else this.#defer(() => this.#next(ids, from), restMs);
    }, 0);
  }

  #next(ids: number, from: number): void {
    this.#isTaken = false;
    const next = this.#line.shift();
    if (!next) return;
    // With the turn of everything else: that is what those in line wait for.
    const { ids: before, ms } = this.#pace;
    this.#pace = { ids: before * MEMORY + TURN_IDS + ids, ms: ms * MEMORY + this.#now() - from };
    this.#take(next.ids);
    next.begin();
  }
}

function afterOthers(run: () => void, restMs: number): void {
  if (restMs > 0) setTimeout(run, restMs);
  else setImmediate(run);
}
