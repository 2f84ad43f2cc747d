import { performance } from 'node:perf_hooks';
import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { SubmissionWatcher, TrackResult } from './ports.ts';
import type { TrackRequest } from './submission.ts';
import { MAX_COMMIT_IDS, type TrackingSteps, trackInParts } from './tracker.ts';

/** An item that waits for its batch. */
type BatchItem<Item, Result> = {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
};

/**
 * Processes items in one transaction and returns their results in order; throws if none was
 * processed.
 */
type BatchFunction<Item, Result> = (items: readonly Item[]) => Result[];

/**
 * The item is a request: one or more submissions. `steps`: a large request takes several turns; see
 * trackInParts. `waiting`: its ids that are not committed yet.
 */
type QueuedRequest = BatchItem<readonly TrackRequest[], TrackResult> & {
  steps: TrackingSteps | undefined;
  waiting: number;
};

type QueueDeps = {
  watcher: Pick<SubmissionWatcher, 'trackGroups' | 'track' | 'refusalOf'>;
  ledger: { whenDurable(): Promise<void> | undefined };
  /** Limit of the estimated time that ids wait for the ledger. */
  maxWaitMs: number;
  /** Calls `run` after other work had `restMs` in the event loop. */
  defer?: (run: () => void, restMs: number) => void;
  /** Monotonic milliseconds. */
  now?: () => number;
};

/**
 * Cost of a request besides its ids, in ids. Without it, single posts would distort the estimate
 * for batches.
 */
const REQUEST_IDS = 20;
/** Assumed pace before the first batch: a slow disk. */
const INITIAL_PACE = { ids: 1_000, ms: 100 };
/** Decay of earlier batches in the measured pace. */
const DECAY = 0.9;
/** Share of a batch's duration that other work gets after it. */
const REST = 0.25;
const MIN_REST_MS = 5;
/**
 * Limit of committed ids that wait for the disk, whose requests stay in memory. Only a disk that
 * hangs has as many waiting.
 */
const MAX_UNSYNCED_IDS = 50_000;

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
  readonly #deps: Required<QueueDeps>;
  /** In the order of their next turns. */
  #queue: QueuedRequest[] = [];
  #queuedIds = 0;
  /** Committed ids that wait for the disk. */
  #unsyncedIds = 0;
  #isBusy = false;
  /** Duration of recent batches, weighted towards the newest. */
  #pace = { ...INITIAL_PACE };

  constructor(deps: QueueDeps) {
    this.#deps = { defer: afterOthers, now: () => performance.now(), ...deps };
  }

  /** Ids that wait for a commit or for the disk. */
  get waitingIds(): number {
    return this.#queuedIds + this.#unsyncedIds;
  }

  /**
   * Queues a valid request. Resolves with the result of its commit, or with undefined if too many
   * ids wait already. Rejects if it cannot be committed.
   */
  take(request: readonly TrackRequest[]): Promise<TrackResult | undefined> {
    const ids = request.length;
    const isFree = !this.#isBusy || this.#queue.length === 0;
    if (this.#isUnsynced() || !(isFree || this.#waitMs(ids + REQUEST_IDS) <= this.#deps.maxWaitMs))
      return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      const steps = ids > MAX_COMMIT_IDS ? trackInParts(this.#deps.watcher, request) : undefined;
      this.#queue.push({ item: request, steps, waiting: ids, resolve, reject });
      this.#queuedIds += ids;
      if (!this.#isBusy) this.#processNext();
    });
  }

  /** Whether a request would be refused, however small it is. */
  isFull(): boolean {
    return this.#isUnsynced() || this.#waitMs(0) >= this.#deps.maxWaitMs;
  }

  /** Whether so many ids wait for the disk that no more may be committed. */
  #isUnsynced(): boolean {
    return this.#unsyncedIds >= MAX_UNSYNCED_IDS;
  }

  /** Returns the estimated wait of everything queued and of `more` ids. */
  #waitMs(more: number): number {
    return (
      ((this.#queuedIds + REQUEST_IDS * this.#queue.length + more) * this.#pace.ms) / this.#pace.ids
    );
  }

  /** Takes the next turn, lets other work run, and continues. */
  #processNext(): void {
    const next = this.#queue[0];
    if (!next) return;
    this.#isBusy = true;
    const { defer, now } = this.#deps;
    const from = now();
    const ids = next.steps ? this.#takeStep(next, next.steps) : this.#commitBatch();
    const restMs = (now() - from) * REST;
    defer(() => {
      if (restMs < MIN_REST_MS || this.#queue.length === 0) this.#end(ids, from);
      else defer(() => this.#end(ids, from), restMs);
    }, 0);
  }

  /**
   * Commits the next small requests together. Large ones keep their turns. Returns the cost, in
   * ids.
   */
  #commitBatch(): number {
    const batch: QueuedRequest[] = [];
    let ids = 0;
    for (const request of this.#queue) {
      if (request.steps) continue;
      if (ids + request.waiting > MAX_COMMIT_IDS) break;
      ids += request.waiting;
      batch.push(request);
    }
    const taken = new Set(batch);
    this.#queue = this.#queue.filter((request) => !taken.has(request));
    this.#queuedIds -= ids;
    runBatch(batch, (requests) => this.#deps.watcher.trackGroups(requests));
    this.#countUnsynced(ids);
    return REQUEST_IDS * batch.length + ids;
  }

  /**
   * Takes the next step of a large request, whose next turn is after all others. Returns its cost,
   * in ids.
   */
  #takeStep(request: QueuedRequest, steps: TrackingSteps): number {
    this.#queue.shift();
    let committed = 0;
    try {
      const { done, value } = steps.next();
      if (done) {
        if (value.kind === 'tracked') committed = request.waiting;
        this.#queuedIds -= request.waiting;
        request.resolve(value);
      } else {
        committed = value;
        request.waiting -= committed;
        this.#queuedIds -= committed;
        this.#queue.push(request);
      }
    } catch (error) {
      this.#queuedIds -= request.waiting;
      request.reject(error);
    }
    this.#countUnsynced(committed);
    return REQUEST_IDS + committed;
  }

  #countUnsynced(ids: number): void {
    const durable = ids > 0 ? this.#deps.ledger.whenDurable() : undefined;
    if (!durable) return;
    this.#unsyncedIds += ids;
    const release = () => {
      this.#unsyncedIds -= ids;
    };
    durable.then(release, release);
  }

  #end(ids: number, from: number): void {
    this.#isBusy = false;
    if (this.#queue.length > 0) {
      // Includes the time of other work, which queued requests wait for, too.
      this.#pace = {
        ids: this.#pace.ids * DECAY + ids,
        ms: this.#pace.ms * DECAY + this.#deps.now() - from,
      };
    }
    this.#processNext();
  }
}

/** Calls `run` after other work had `restMs` in the event loop. */
function afterOthers(run: () => void, restMs: number): void {
  // Three iterations: requests that arrived meanwhile are read in the next one and served at its
  // end.
  if (restMs === 0) setImmediate(() => setImmediate(() => setImmediate(run)));
  else setTimeout(run, restMs);
}

/** Settles every item. */
function runBatch<Item, Result>(
  group: readonly BatchItem<Item, Result>[],
  batch: BatchFunction<Item, Result>,
): void {
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
