import { performance } from 'node:perf_hooks';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { TrackRequest } from '../../domain/submission.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { FairQueue, isWithinFairShare } from '../../watch/fair-queue.ts';
import type { TrackResult } from '../../watch/ports.ts';
import type { Watcher } from '../../watch/watcher.ts';
import { clientOf } from '../ports.ts';
import { sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { type BatchItem, runBatch } from './request-batcher.ts';
import { Shares } from './shares.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Ends the accounting of the body. Idempotent. */
    bodyDone?: (() => void) | undefined;
    /** Accounts for received bytes of the body. */
    bodyGrew?: ((bytes: number) => void) | undefined;
  }
}

/** The exhausted resource. */
export type ShedReason = 'tracking' | 'held_open';

type AdmissionDeps = {
  /** Limit of the estimated time that ids wait for the ledger. */
  maxWaitMs: number;
  maxHeldOpen: number;
  onShed: (reason: ShedReason) => void;
  /** Calls `run` after other work had `restMs` in the event loop. */
  defer?: (run: () => void, restMs: number) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/** The tenant of a request. */
type Target = { watcher: Pick<Watcher, 'trackGroups'>; ledger: Pick<Ledger, 'whenDurable'> };

/** The item is a request: one or more submissions, which are all tracked or none. */
type QueuedRequest = BatchItem<readonly TrackRequest[], TrackResult> & { target: Target; client: string };

/** Resources used by a client: bodies being received, and ids waiting for the ledger. */
type ClientUsage = { bytes: number; bodies: number; ids: number; requests: number };

/** Memory of a request besides its body. */
const REQUEST_BYTES = 1_024;
const MAX_BODY_BYTES = 32 * 1024 * 1024;
/** Cost of a request besides its ids, in ids. Without it, single posts would distort the estimate for batches. */
const REQUEST_IDS = 20;
/** Assumed pace before the first batch: a slow disk. */
const INITIAL_PACE = { ids: 1_000, ms: 100 };
/** Decay of earlier batches in the measured pace. */
const DECAY = 0.9;
/** Limit of ids per commit of several requests, which keeps batches short. */
const MAX_BATCH_IDS = 1_000;
/** Share of a batch's duration that other work gets after it. */
const REST = 0.25;
const MIN_REST_MS = 5;
/** Interval of the idle check during a rest, and the idle time in it that ends the rest early. */
const IDLE_CHECK_MS = 3;
const MIN_IDLE_MS = 2;
/** Limit of committed ids that wait for the disk, whose requests stay in memory. Only a disk that hangs has as many waiting. */
const MAX_UNSYNCED_IDS = 50_000;
const RETRY_AFTER_S = { tracking: 5, held_open: 30 } as const;

/**
 * Admission control for tracking requests and for requests held open. Requests that cannot be served soon are refused with 503
 * and Retry-After, before their bodies are read if possible.
 *
 * Committing ten thousand ids takes a large part of a second, in which nothing else runs. Tracking requests are therefore queued,
 * and other work (polls, deliveries, health checks) runs between two batches. Small requests share a batch, because a commit
 * costs more than the few ids in it (row posts). The rest between two batches ends early when the event loop is idle (row
 * ids per second, 20 %). Each client is limited to its share of the body memory and of the queue.
 */
export class Admission {
  readonly #deps: Required<AdmissionDeps>;
  readonly #queue = new FairQueue<QueuedRequest>();
  /** By client, while it uses any. */
  readonly #usage = new Map<string, ClientUsage>();
  readonly #total: ClientUsage = { bytes: 0, bodies: 0, ids: 0, requests: 0 };
  readonly #heldOpen = new Shares();
  /** Committed ids that wait for the disk. */
  readonly #unsynced = new Shares();
  #isBusy = false;
  /** Duration of recent batches, weighted towards the newest. */
  #pace = { ...INITIAL_PACE };

  constructor(deps: AdmissionDeps) {
    this.#deps = { defer: afterOthers, now: () => performance.now(), ...deps };
  }

  /** Ids that wait for a commit or for the disk. */
  get waitingIds(): number {
    return this.#total.ids + this.#unsynced.total;
  }

  /** Hook of tracking requests: refuses a request before its body is read, by its declared length. */
  beforeBody(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const client = clientOf(request.caller);
    // A longer body is refused by its limit.
    const declared = Math.min(request.routeOptions.bodyLimit, Number(request.headers['content-length'] ?? 0));
    if (!this.#mayReceive(client, REQUEST_BYTES + declared) || this.#isQueueFull(client)) {
      this.shed('tracking', request, reply);
      return;
    }
    let bytes = REQUEST_BYTES;
    this.#use(client, { bytes, bodies: 1 });
    request.bodyGrew = (more) => {
      bytes += more;
      this.#use(client, { bytes: more });
    };
    request.bodyDone = () => {
      if (bytes > 0) this.#use(client, { bytes: -bytes, bodies: -1 });
      bytes = 0;
      request.bodyGrew = undefined;
    };
    reply.raw.once('close', request.bodyDone);
    done();
  }

  /** Hook of tracking requests: accounts for the body as it is received, whatever length was declared. */
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
   * Queues a valid request; clients are served in turn. Resolves with the result of its commit, or with undefined if too many ids
   * wait already. Rejects if it cannot be committed.
   */
  take(request: readonly TrackRequest[], target: Target, client = ''): Promise<TrackResult | undefined> {
    const ids = request.length;
    const isFree = !this.#isBusy || this.#total.ids === 0;
    if (!this.#isSyncedSoon(client) || !(isFree || this.#mayWait(client, ids + REQUEST_IDS)))
      return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      this.#queue.add(client, { item: request, target, client, resolve, reject });
      this.#use(client, { ids, requests: 1 });
      if (!this.#isBusy) this.#processNext();
    });
  }

  /** Limits the requests of routes with `staysOpen`. */
  boundHeldOpen(app: FastifyInstance): void {
    app.addHook('onRequest', (request, reply, done) => {
      if (!request.routeOptions.config?.staysOpen) {
        done();
        return;
      }
      const client = clientOf(request.caller);
      if (!this.#heldOpen.hasRoom(client, 1, this.#deps.maxHeldOpen)) {
        this.shed('held_open', request, reply);
        return;
      }
      this.#heldOpen.add(client, 1);
      reply.raw.once('close', () => this.#heldOpen.add(client, -1));
      done();
    });
  }

  shed(reason: ShedReason, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const retryAfterS = RETRY_AFTER_S[reason];
    this.#deps.onShed(reason);
    logOf(request).warn({ reason, waiting_ids: this.waitingIds }, 'http.shed');
    reply.header('retry-after', retryAfterS);
    const detail =
      reason === 'tracking'
        ? 'too many ids are waiting: nothing of the request was accepted'
        : 'too many requests are held open';
    return sendProblem(reply, { status: 503, detail: `${detail}; try again in ${retryAfterS} s` });
  }

  #use(client: string, more: Partial<ClientUsage>): void {
    const own = this.#usage.get(client) ?? { bytes: 0, bodies: 0, ids: 0, requests: 0 };
    for (const [name, count] of Object.entries(more) as [keyof ClientUsage, number][]) {
      own[name] += count;
      this.#total[name] += count;
    }
    if (own.bodies + own.requests > 0) this.#usage.set(client, own);
    else this.#usage.delete(client);
  }

  /** Number of clients that use anything, including this one. */
  #clients(client: string): number {
    return this.#usage.size + (this.#usage.has(client) ? 0 : 1);
  }

  #mayReceive(client: string, bytes: number): boolean {
    const own = this.#usage.get(client)?.bytes ?? 0;
    return isWithinFairShare(bytes, {
      own,
      all: this.#total.bytes,
      limit: MAX_BODY_BYTES,
      clients: this.#clients(client),
    });
  }

  /** Whether `ids` more ids would be committed in time. */
  #mayWait(client: string, ids: number): boolean {
    const own = this.#usage.get(client);
    const waits = { own: own ? this.#waitMs(own) : 0, all: this.#waitMs(this.#total) };
    const limits = { limit: this.#deps.maxWaitMs, clients: this.#clients(client) };
    return isWithinFairShare(this.#msOf(ids), { ...waits, ...limits });
  }

  #isQueueFull(client: string): boolean {
    if (!this.#isSyncedSoon(client)) return true;
    return this.#waitMs(this.#total) >= this.#deps.maxWaitMs && !this.#mayWait(client, REQUEST_IDS);
  }

  /** Whether so few ids wait for the disk that more may be committed. */
  #isSyncedSoon(client: string): boolean {
    return this.#unsynced.hasRoom(client, 1, MAX_UNSYNCED_IDS);
  }

  #waitMs({ ids, requests }: ClientUsage): number {
    return this.#msOf(ids + REQUEST_IDS * requests);
  }

  #msOf(ids: number): number {
    return (ids * this.#pace.ms) / this.#pace.ids;
  }

  /** Processes the next batch, lets other work run, and continues. */
  #processNext(): void {
    const target = this.#queue.peek()?.target;
    if (!target) return;
    this.#isBusy = true;
    const batch = this.#nextBatch(target);
    const { defer, now } = this.#deps;
    const from = now();
    runBatch(batch, (requests) => target.watcher.trackGroups(requests));
    this.#countUnsynced(batch, target);
    const restMs = (now() - from) * REST;
    defer(() => {
      if (restMs < MIN_REST_MS || this.#queue.clients === 0) this.#end(batch, from);
      else defer(() => this.#end(batch, from), restMs);
    }, 0);
  }

  #countUnsynced(batch: readonly QueuedRequest[], { ledger }: Target): void {
    const durable = ledger.whenDurable();
    for (const { client, item } of durable ? batch : []) {
      this.#unsynced.add(client, item.length);
      const release = () => this.#unsynced.add(client, -item.length);
      durable?.then(release, release);
    }
  }

  /** Returns the next requests, all of one tenant. */
  #nextBatch({ watcher }: Target): QueuedRequest[] {
    const batch: QueuedRequest[] = [];
    let ids = 0;
    for (let next = this.#queue.peek(); next?.target.watcher === watcher; next = this.#queue.peek()) {
      ids += next.item.length;
      if (batch.length > 0 && ids > MAX_BATCH_IDS) break;
      this.#queue.shift();
      this.#use(next.client, { ids: -next.item.length, requests: -1 });
      batch.push(next);
    }
    return batch;
  }

  #end(batch: readonly QueuedRequest[], from: number): void {
    this.#isBusy = false;
    if (this.#queue.clients > 0) {
      // Includes the time of other work, which queued requests wait for, too.
      const ids = batch.reduce((sum, one) => sum + REQUEST_IDS + one.item.length, 0);
      this.#pace = { ids: this.#pace.ids * DECAY + ids, ms: this.#pace.ms * DECAY + this.#deps.now() - from };
    }
    this.#processNext();
  }
}

/** Calls `run` after `restMs`, or earlier if the event loop is idle. */
function afterOthers(run: () => void, restMs: number): void {
  if (restMs === 0) {
    // Three iterations: requests that arrived meanwhile are read in the next one and served at its end.
    setImmediate(() => setImmediate(() => setImmediate(run)));
    return;
  }
  const endsAt = performance.now() + restMs;
  let idleMs = performance.eventLoopUtilization().idle;
  const check = () => {
    const { idle } = performance.eventLoopUtilization();
    if (idle - idleMs >= MIN_IDLE_MS || performance.now() >= endsAt) {
      run();
      return;
    }
    idleMs = idle;
    setTimeout(check, IDLE_CHECK_MS);
  };
  setTimeout(check, IDLE_CHECK_MS);
}
