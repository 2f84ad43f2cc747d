import { performance } from 'node:perf_hooks';
import type { TrackRequest } from '../../domain/submission.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { FairQueue, isWithinFairShare } from '../../watch/fair-queue.ts';
import { LedgerUnavailableError, type TrackResult } from '../../watch/ports.ts';
import { MAX_COMMIT_IDS, type TrackingSteps, trackInParts } from '../../watch/track-in-parts.ts';
import type { Watcher } from '../../watch/watcher.ts';
import { Shares } from './shares.ts';

/** An item that waits for its batch. */
type BatchItem<Item, Result> = {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
};

/** Processes items in one transaction and returns their results in order; throws if none was processed. */
type BatchFunction<Item, Result> = (items: readonly Item[]) => Result[];

type Target = {
  watcher: Pick<Watcher, 'trackGroups' | 'track' | 'refusalOf'>;
  ledger: Pick<Ledger, 'whenDurable'>;
};

/**
 * The item is a request: one or more submissions. `steps`: a large request takes several turns; see track-in-parts.ts. `waiting`: its
 * ids that are not committed yet.
 */
type QueuedRequest = BatchItem<readonly TrackRequest[], TrackResult> & {
  target: Target;
  client: string;
  steps: TrackingSteps | undefined;
  waiting: number;
};

type QueueDeps = {
  /** Limit of the estimated time that ids wait for the ledger. */
  maxWaitMs: number;
  /** Calls `run` after other work had `restMs` in the event loop. */
  defer?: (run: () => void, restMs: number) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/** What waits, of a client or of all. */
type Waiting = { ids: number; requests: number };

/** Cost of a request besides its ids, in ids. Without it, single posts would distort the estimate for batches. */
const REQUEST_IDS = 20;
/** Assumed pace before the first batch: a slow disk. */
const INITIAL_PACE = { ids: 1_000, ms: 100 };
/** Decay of earlier batches in the measured pace. */
const DECAY = 0.9;
/** Share of a batch's duration that other work gets after it. */
const REST = 0.25;
const MIN_REST_MS = 5;
/** Limit of committed ids that wait for the disk, whose requests stay in memory. Only a disk that hangs has as many waiting. */
const MAX_UNSYNCED_IDS = 50_000;

/**
 * The tracking requests that wait for a commit.
 *
 * Committing ten thousand ids takes a large part of a second, in which nothing else could run. Requests are therefore committed in
 * turns of at most a thousand ids, and other work (polls, deliveries, health checks) runs between two turns. A large request takes
 * several turns, and other clients have theirs in between. Small requests share one, because a commit costs more than the few ids in
 * it (row posts). Each client is
 * limited to its share of the waiting time.
 */
export class TrackingQueue {
  readonly #deps: Required<QueueDeps>;
  readonly #queue = new FairQueue<QueuedRequest>();
  /** By client, while it has a request waiting. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #total: Waiting = { ids: 0, requests: 0 };
  /** Committed ids that wait for the disk. */
  readonly #unsynced = new Shares();
  #isBusy = false;
  /** Duration of recent batches, weighted towards the newest. */
  #pace = { ...INITIAL_PACE };

  constructor(deps: QueueDeps) {
    this.#deps = { defer: afterOthers, now: () => performance.now(), ...deps };
  }

  /** Ids that wait for a commit or for the disk. */
  get waitingIds(): number {
    return this.#total.ids + this.#unsynced.total;
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
      const steps = ids > MAX_COMMIT_IDS ? trackInParts(target.watcher, request) : undefined;
      this.#queue.add(client, { item: request, target, client, steps, waiting: ids, resolve, reject });
      this.#use(client, { ids, requests: 1 });
      if (!this.#isBusy) this.#processNext();
    });
  }

  /** Whether a request of this client would be refused, however small it is. */
  isFull(client: string): boolean {
    if (!this.#isSyncedSoon(client)) return true;
    return this.#waitMs(this.#total) >= this.#deps.maxWaitMs && !this.#mayWait(client, REQUEST_IDS);
  }

  #use(client: string, { ids, requests = 0 }: { ids: number; requests?: number }): void {
    const own = this.#waiting.get(client) ?? { ids: 0, requests: 0 };
    for (const waiting of [own, this.#total]) {
      waiting.ids += ids;
      waiting.requests += requests;
    }
    if (own.requests > 0) this.#waiting.set(client, own);
    else this.#waiting.delete(client);
  }

  /** Whether `ids` more ids would be committed in time. */
  #mayWait(client: string, ids: number): boolean {
    const own = this.#waiting.get(client);
    const waits = { own: own ? this.#waitMs(own) : 0, all: this.#waitMs(this.#total) };
    const limits = { limit: this.#deps.maxWaitMs, clients: this.#waiting.size + (own ? 0 : 1) };
    return isWithinFairShare(this.#msOf(ids), { ...waits, ...limits });
  }

  /** Whether so few ids wait for the disk that more may be committed. */
  #isSyncedSoon(client: string): boolean {
    return this.#unsynced.hasRoom(client, 1, MAX_UNSYNCED_IDS);
  }

  #waitMs({ ids, requests }: Waiting): number {
    return this.#msOf(ids + REQUEST_IDS * requests);
  }

  #msOf(ids: number): number {
    return (ids * this.#pace.ms) / this.#pace.ids;
  }

  /** Takes the next turn, lets other work run, and continues. */
  #processNext(): void {
    const next = this.#queue.peek();
    if (!next) return;
    this.#isBusy = true;
    const { defer, now } = this.#deps;
    const from = now();
    const ids = next.steps ? this.#takeStep(next, next.steps) : this.#commitBatch(next.target);
    const restMs = (now() - from) * REST;
    defer(() => {
      if (restMs < MIN_REST_MS || this.#queue.clients === 0) this.#end(ids, from);
      else defer(() => this.#end(ids, from), restMs);
    }, 0);
  }

  /** Commits the next small requests together. Clients with a large one keep their turns. Returns the cost, in ids. */
  #commitBatch(target: Target): number {
    const batch: QueuedRequest[] = [];
    let ids = 0;
    for (
      let next = this.#queue.peek(isSmall);
      next?.target.watcher === target.watcher;
      next = this.#queue.peek(isSmall)
    ) {
      ids += next.item.length;
      if (ids > MAX_COMMIT_IDS) break;
      this.#queue.shift(isSmall);
      this.#use(next.client, { ids: -next.item.length, requests: -1 });
      batch.push(next);
    }
    runBatch(batch, (requests) => target.watcher.trackGroups(requests));
    for (const { client, item } of batch) this.#countUnsynced(client, item.length, target);
    return batch.reduce((sum, { item }) => sum + REQUEST_IDS + item.length, 0);
  }

  /** Takes the next step of a large request. Returns its cost, in ids. */
  #takeStep(request: QueuedRequest, steps: TrackingSteps): number {
    const { client, target, waiting } = request;
    this.#queue.pass();
    let committed = 0;
    try {
      const { done, value } = steps.next();
      if (done) {
        if (value.kind === 'tracked') committed = waiting;
        this.#remove(request);
        request.resolve(value);
      } else {
        committed = value;
        request.waiting -= committed;
        this.#use(client, { ids: -committed });
      }
    } catch (error) {
      this.#remove(request);
      request.reject(error);
    }
    this.#countUnsynced(client, committed, target);
    return REQUEST_IDS + committed;
  }

  #remove(request: QueuedRequest): void {
    const { client, waiting } = request;
    this.#queue.delete(client, request);
    this.#use(client, { ids: -waiting, requests: -1 });
  }

  #countUnsynced(client: string, ids: number, { ledger }: Target): void {
    const durable = ids > 0 ? ledger.whenDurable() : undefined;
    if (!durable) return;
    this.#unsynced.add(client, ids);
    const release = () => this.#unsynced.add(client, -ids);
    durable.then(release, release);
  }

  #end(ids: number, from: number): void {
    this.#isBusy = false;
    if (this.#queue.clients > 0) {
      // Includes the time of other work, which queued requests wait for, too.
      this.#pace = { ids: this.#pace.ids * DECAY + ids, ms: this.#pace.ms * DECAY + this.#deps.now() - from };
    }
    this.#processNext();
  }
}

/** Whether a request is committed together with others. */
function isSmall({ steps }: QueuedRequest): boolean {
  return steps === undefined;
}

/** Calls `run` after other work had `restMs` in the event loop. */
function afterOthers(run: () => void, restMs: number): void {
  // Three iterations: requests that arrived meanwhile are read in the next one and served at its end.
  if (restMs === 0) setImmediate(() => setImmediate(() => setImmediate(run)));
  else setTimeout(run, restMs);
}

/** Settles every item. */
function runBatch<Item, Result>(group: readonly BatchItem<Item, Result>[], batch: BatchFunction<Item, Result>): void {
  let results: Result[];
  try {
    results = batch(group.map(({ item }) => item));
  } catch (error) {
    // Each item is repeated alone, so that one failing item does not fail the others.
    if (group.length > 1 && !isUnavailable(error)) for (const one of group) runBatch([one], batch);
    else for (const { reject } of group) reject(error);
    return;
  }
  for (const [index, { resolve }] of group.entries()) resolve(results[index] as Result);
}

/** An unavailable ledger fails every item, and repeating each could take as long again. */
function isUnavailable(error: unknown): boolean {
  return error instanceof LedgerUnavailableError;
}
