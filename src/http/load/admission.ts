import { performance } from 'node:perf_hooks';
import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FairQueue, isWithinFairShare } from '../../watch/fair-queue.ts';
import { clientOf } from '../ports.ts';
import { sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { type BatchFunction, type BatchItem, runBatch } from './request-batcher.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Its body is no longer counted among those that are read or wait. Idempotent. */
    bodyDone?: (() => void) | undefined;
    /** So many more bytes of its body have come. */
    bodyGrew?: ((bytes: number) => void) | undefined;
  }
}

/** What there is too much of. */
export type ShedReason = 'tracking' | 'held_open';

export type AdmissionDeps<Body, Outcome> = {
  processBatch: BatchFunction<Body, Outcome>;
  /** So long may ids wait for the ledger, as it is estimated. */
  maxWaitMs: number;
  /** Requests that may be held open. */
  maxHeldOpen: number;
  onShed: (what: ShedReason) => void;
  /** Calls `run` once everything else had its turn, and had so long for it. */
  defer?: (run: () => void, restMs: number) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

type QueuedRequest<Body, Outcome> = BatchItem<Body, Outcome> & { ids: number; client: string };

/** What one client has in hand: bytes of bodies, and what waits for the ledger. */
type ClientUsage = { bytes: number; bodies: number; ids: number; requests: number };

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
 * Small ones that wait are taken in one turn, because a commit costs more than the few ids in it. What one client may have
 * read or wait leaves the others their share.
 */
export class Admission<Body, Outcome> {
  readonly #deps: AdmissionDeps<Body, Outcome>;
  readonly #defer: (run: () => void, restMs: number) => void;
  readonly #now: () => number;
  readonly #line = new FairQueue<QueuedRequest<Body, Outcome>>();
  /** By client, as long as it has any. */
  readonly #held = new Map<string, ClientUsage>();
  readonly #all: ClientUsage = { bytes: 0, bodies: 0, ids: 0, requests: 0 };
  readonly #heldOpen = new Map<string, number>();
  #allHeldOpen = 0;
  #isTaken = false;
  /** What the last turns took, the newer the more it counts. */
  #pace = { ...FIRST_PACE };

  constructor(deps: AdmissionDeps<Body, Outcome>) {
    this.#deps = deps;
    this.#defer = deps.defer ?? afterOthers;
    this.#now = deps.now ?? (() => performance.now());
  }

  get waitingIds(): number {
    return this.#all.ids;
  }

  /** A hook of tracking requests, before their bodies are read. A declared length that does not fit saves sending it. */
  beforeBody(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const { bodyLimit } = request.routeOptions;
    const client = clientOf(request.caller);
    // What is longer is refused as soon as it is looked at.
    const declared = Math.min(bodyLimit, Number(request.headers['content-length'] ?? 0));
    if (!this.#mayReceive(client, LEAST_BYTES + declared) || this.#isLineFull(client)) {
      this.shed('tracking', request, reply);
      return;
    }
    let bytes = LEAST_BYTES;
    this.#hold(client, { bytes, bodies: 1 });
    request.bodyGrew = (more) => {
      bytes += more;
      this.#hold(client, { bytes: more });
    };
    request.bodyDone = () => {
      if (bytes > 0) this.#hold(client, { bytes: -bytes, bodies: -1 });
      bytes = 0;
      request.bodyGrew = undefined;
    };
    reply.raw.once('close', request.bodyDone);
    done();
  }

  /** A hook of tracking requests, while their bodies are read: what counts is what has come, whatever was declared. */
  whileBody(request: FastifyRequest, reply: FastifyReply, _body: unknown, done: () => void): void {
    const client = clientOf(request.caller);
    request.raw.on('data', ({ length }: Buffer) => {
      if (reply.sent) return;
      if (this.#mayReceive(client, length)) request.bodyGrew?.(length);
      else this.shed('tracking', request, reply.header('connection', 'close'));
    });
    done();
  }

  /**
   * Takes a body of so many ids when it is its turn; clients take turns. Resolves once that is committed; undefined: too many
   * ids wait already.
   */
  take(body: Body, ids: number, client = ''): Promise<Outcome | undefined> {
    if (this.#isTaken && this.#all.ids > 0 && !this.#mayWait(client, ids + TURN_IDS)) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#line.add(client, { item: body, ids, client, resolve, reject });
      this.#hold(client, { ids, requests: 1 });
      if (!this.#isTaken) this.#turn();
    });
  }

  /** Bounds the requests of these routes that are held open on purpose. */
  boundHeldOpen(app: FastifyInstance): void {
    const hold = (client: string, count: number) => {
      const own = (this.#heldOpen.get(client) ?? 0) + count;
      this.#allHeldOpen += count;
      if (own > 0) this.#heldOpen.set(client, own);
      else this.#heldOpen.delete(client);
    };
    app.addHook('onRequest', (request, reply, done) => {
      if (!request.routeOptions.config?.staysOpen) {
        done();
        return;
      }
      const client = clientOf(request.caller);
      const own = this.#heldOpen.get(client) ?? 0;
      const clients = this.#heldOpen.size + (own > 0 ? 0 : 1);
      if (!isWithinFairShare(1, { own, all: this.#allHeldOpen, limit: this.#deps.maxHeldOpen, clients })) {
        this.shed('held_open', request, reply);
        return;
      }
      hold(client, 1);
      reply.raw.once('close', () => hold(client, -1));
      done();
    });
  }

  shed(what: ShedReason, request: { log: FastifyBaseLogger }, reply: FastifyReply): FastifyReply {
    const retryAfterS = RETRY_AFTER_S[what];
    this.#deps.onShed(what);
    logOf(request).warn({ reason: what, waiting_ids: this.#all.ids }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const reason =
      what === 'tracking'
        ? 'too many ids wait to be taken: nothing of the request was'
        : 'too many requests are held open';
    return sendProblem(reply, { status: 503, detail: `${reason}; try again in ${retryAfterS} s` });
  }

  #hold(client: string, more: Partial<ClientUsage>): void {
    const own = this.#held.get(client) ?? { bytes: 0, bodies: 0, ids: 0, requests: 0 };
    for (const [name, count] of Object.entries(more) as [keyof ClientUsage, number][]) {
      own[name] += count;
      this.#all[name] += count;
    }
    if (own.bodies + own.requests > 0) this.#held.set(client, own);
    else this.#held.delete(client);
  }

  /** Of all clients with anything in hand, this one included. */
  #clients(client: string): number {
    return this.#held.size + (this.#held.has(client) ? 0 : 1);
  }

  #mayReceive(client: string, bytes: number): boolean {
    const own = this.#held.get(client)?.bytes ?? 0;
    return isWithinFairShare(bytes, {
      own,
      all: this.#all.bytes,
      limit: MAX_BODY_BYTES,
      clients: this.#clients(client),
    });
  }

  /** Whether so many ids more would be taken in time. */
  #mayWait(client: string, ids: number): boolean {
    const own = this.#held.get(client);
    const waits = { own: own ? this.#waitMs(own) : 0, all: this.#waitMs(this.#all) };
    const limits = { limit: this.#deps.maxWaitMs, clients: this.#clients(client) };
    return isWithinFairShare(this.#msOf(ids), { ...waits, ...limits });
  }

  #isLineFull(client: string): boolean {
    return this.#waitMs(this.#all) >= this.#deps.maxWaitMs && !this.#mayWait(client, TURN_IDS);
  }

  #waitMs({ ids, requests }: ClientUsage): number {
    return this.#msOf(ids + TURN_IDS * requests);
  }

  #msOf(ids: number): number {
    return (ids * this.#pace.ms) / this.#pace.ids;
  }

  /** Of those who wait longest, and of everything else after them; then comes the next. */
  #turn(): void {
    const turn = this.#nextInLine();
    if (turn.length === 0) return;
    this.#isTaken = true;
    const from = this.#now();
    runBatch(turn, this.#deps.processBatch);
    const restMs = (this.#now() - from) * REST;
    this.#defer(() => {
      if (restMs < LEAST_REST_MS || this.#line.clients === 0) this.#end(turn, from);
      else this.#defer(() => this.#end(turn, from), restMs);
    }, 0);
  }

  #nextInLine(): QueuedRequest<Body, Outcome>[] {
    const turn: QueuedRequest<Body, Outcome>[] = [];
    let ids = 0;
    for (let next = this.#line.peek(); next; next = this.#line.peek()) {
      ids += next.ids;
      if (turn.length > 0 && ids > TOGETHER_IDS) break;
      this.#line.shift();
      this.#hold(next.client, { ids: -next.ids, requests: -1 });
      turn.push(next);
    }
    return turn;
  }

  #end(turn: readonly QueuedRequest<Body, Outcome>[], from: number): void {
    this.#isTaken = false;
    if (this.#line.clients > 0) {
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
