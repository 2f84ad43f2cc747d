import { performance } from 'node:perf_hooks';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Batch, type Member, runBatch } from './batcher.ts';
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

export type AdmissionDeps<Body, Outcome> = {
  take: Batch<Body, Outcome>;
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

type Waiting<Body, Outcome> = Member<Body, Outcome> & { ids: number };

/** What a request weighs besides its body. */
const LEAST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** What a request costs besides its ids, in ids: else a stream of single ones would make large batches look endless. */
const TURN_IDS = 20;
/** Until there was a turn: a slow disk. */
const FIRST_PACE = { ids: 1_000, ms: 100 };
const MEMORY = 0.9;
/** Requests that wait are taken in one commit up to so many ids, so that a turn stays short. */
const TOGETHER_IDS = 1_000;
/** After a long turn others get this share of its time: bodies and answers come and go in many small steps. */
const REST = 0.25;
const LEAST_REST_MS = 5;
/** While others rest it is looked so often whether anything else has to do, and so much of that time idle says that nothing has. */
const NAP_MS = 3;
const ENOUGH_IDLE_MS = 2;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

/**
 * Takes no more than can be served soon, and says so to the rest: 503 with Retry-After, best before a body is read.
 *
 * Committing ten thousand ids takes a good part of a second, in which nothing else runs. So tracking requests stand in
 * line, and between two turns everything else has its own: answers of the upstream, deliveries, probes of the process.
 * Small ones that wait are taken in one turn, because a commit costs more than the few ids in it.
 */
export class Admission<Body, Outcome> {
  readonly #deps: AdmissionDeps<Body, Outcome>;
  readonly #defer: (run: () => void, restMs: number) => void;
  readonly #now: () => number;
  readonly #line: Waiting<Body, Outcome>[] = [];
  #bodyBytes = 0;
  #waitingIds = 0;
  #heldOpen = 0;
  #isTaken = false;
  /** What the last turns took, the newer the more it counts. */
  #pace = { ...FIRST_PACE };

  constructor(deps: AdmissionDeps<Body, Outcome>) {
    this.#deps = deps;
    this.#defer = deps.defer ?? afterOthers;
    this.#now = deps.now ?? (() => performance.now());
  }

  get waitingIds(): number {
    return this.#waitingIds;
  }

  /** A hook of tracking requests, before their bodies are read. */
  beforeBody(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const { bodyLimit } = request.routeOptions;
    // What is longer is refused as soon as it is looked at.
    const bytes = LEAST_BYTES + Math.min(bodyLimit, Number(request.headers['content-length'] ?? bodyLimit));
    const isFull = this.#bodyBytes > 0 && this.#bodyBytes + bytes > MAX_BODY_BYTES;
    if (isFull || this.#waitMs(0) >= this.#deps.maxWaitMs) {
      this.shed('tracking', request, reply);
      return;
    }
    this.#bodyBytes += bytes;
    let isDone = false;
    request.bodyDone = () => {
      if (!isDone) this.#bodyBytes -= bytes;
      isDone = true;
    };
    reply.raw.once('close', request.bodyDone);
    done();
  }

  /** Takes a body of so many ids when it is its turn. Resolves once that is committed; undefined: too many ids wait already. */
  take(body: Body, ids: number): Promise<Outcome | undefined> {
    if (this.#isTaken && this.#waitingIds > 0 && this.#waitMs(ids + TURN_IDS) > this.#deps.maxWaitMs)
      return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#line.push({ item: body, ids, resolve, reject });
      this.#waitingIds += ids;
      if (!this.#isTaken) this.#turn();
    });
  }

  /** Bounds the requests of these routes that are held open on purpose. */
  boundHeldOpen(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      if (!request.routeOptions.config?.staysOpen) {
        done();
      } else if (this.#heldOpen >= this.#deps.maxHeldOpen) {
        this.shed('held_open', request, reply);
      } else {
        this.#heldOpen += 1;
        reply.raw.once('close', () => {
          this.#heldOpen -= 1;
        });
        done();
      }
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

  /** Of those who wait longest, and of everything else after them; then comes the next. */
  #turn(): void {
    const turn = this.#nextInLine();
    if (turn.length === 0) return;
    this.#isTaken = true;
    const from = this.#now();
    runBatch(turn, this.#deps.take);
    const restMs = (this.#now() - from) * REST;
    this.#defer(() => {
      if (restMs < LEAST_REST_MS || this.#line.length === 0) this.#end(turn, from);
      else this.#defer(() => this.#end(turn, from), restMs);
    }, 0);
  }

  #nextInLine(): Waiting<Body, Outcome>[] {
    let ids = 0;
    const end = this.#line.findIndex((one, index) => {
      ids += one.ids;
      return index > 0 && ids > TOGETHER_IDS;
    });
    const turn = this.#line.splice(0, end === -1 ? this.#line.length : end);
    for (const one of turn) this.#waitingIds -= one.ids;
    return turn;
  }

  #end(turn: readonly Waiting<Body, Outcome>[], from: number): void {
    this.#isTaken = false;
    if (this.#line.length > 0) {
      // With the turn of everything else: that is what those in line wait for.
      const ids = turn.reduce((sum, one) => sum + TURN_IDS + one.ids, 0);
      this.#pace = { ids: this.#pace.ids * MEMORY + ids, ms: this.#pace.ms * MEMORY + this.#now() - from };
    }
    this.#turn();
  }
}

/** Ends the rest where everything else has nothing to do before it is over. */
function afterOthers(run: () => void, restMs: number): void {
  if (restMs === 0) {
    // Wherever in its turn the event loop is: those that arrived meanwhile are read in the next one, and served at its end.
    setImmediate(() => setImmediate(() => setImmediate(run)));
    return;
  }
  const endsAt = performance.now() + restMs;
  let idleMs = performance.eventLoopUtilization().idle;
  const look = () => {
    const { idle } = performance.eventLoopUtilization();
    if (idle - idleMs >= ENOUGH_IDLE_MS || performance.now() >= endsAt) {
      run();
      return;
    }
    idleMs = idle;
    setTimeout(look, NAP_MS);
  };
  setTimeout(look, NAP_MS);
}
