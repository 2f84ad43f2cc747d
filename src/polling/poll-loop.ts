import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { PauseRequest } from '../lib/retry-after.ts';
import type { Observation } from '../submissions/classify.ts';
import type { PollEngine, RecordedObservation, WatcherLedger } from '../submissions/ports.ts';
import type { Paced } from './entry.ts';
import type { WatcherListener } from './listeners.ts';
import {
  OnDemandPolls,
  type OnDemandRefusal,
  type OnDemandResult,
  type ReservationResult,
} from './on-demand-polls.ts';
import { OutageJournal } from './outage-journal.ts';
import { ResultCommitter, WRITE_RETRY_MS } from './result-committer.ts';
import type { Scheduler } from './scheduler.ts';
import { TimeLimits } from './time-limits.ts';

type PollLoopDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: WatcherLedger;
  engine: PollEngine;
  clock: Clock;
  recheck: boolean;
  /** Does not throw; see combineListeners. */
  listener: Required<WatcherListener>;
};

/** Submissions that are read from the ledger at once after a restart. */
const RESUME_PAGE_SIZE = 5_000;
/** A new submission that has been tracked for longer than this was tracked by another system. */
const IMPORTED_MS = 60_000;
/**
 * Client name of the polls that test whether the upstream's store works. No credential has this
 * name, so they take turns with no caller.
 */
const PROOF_CLIENT = 'store-evidence';
const NOT_POLLING: OnDemandRefusal = { kind: 'failed', reason: 'not_polling', retryAfterMs: 1_000 };

/**
 * The loop of one upstream: scheduler → engine → ledger → scheduler.
 *
 * A loop is started and stopped once: idle, waiting for an unavailable ledger, registering its open
 * submissions, polling, stopping, stopped. While it polls, the next round is started by a timer, a
 * result, or a change. A new process rebuilds its memory from the ledger.
 */
export class PollLoop {
  readonly #deps: PollLoopDeps;
  readonly #journal: OutageJournal;
  readonly #limits: TimeLimits;
  readonly #committer: ResultCommitter;
  readonly #onDemand: OnDemandPolls;
  readonly #batches = new Set<Promise<void>>();
  #running = false;
  /** On-demand and scheduled polls alternate, so that neither kind starves the other. */
  #isOnDemandNext = false;
  #skippedMs = 0;
  #cancelTimer: (() => void) | undefined;
  /** Undefined once all open submissions of the ledger are registered. */
  #cancelResume: (() => void) | undefined;
  /** Submissions that were tracked again while older ones are being registered. */
  readonly #retracked: Paced[] = [];

  constructor(deps: PollLoopDeps) {
    this.#deps = deps;
    this.#journal = new OutageJournal(deps);
    this.#limits = new TimeLimits({ scheduler: deps.scheduler, journal: this.#journal });
    const isLedgerAvailable = () => this.now() >= this.#committer.blockedUntil;
    this.#onDemand = new OnDemandPolls({ ...deps, isLedgerAvailable });
    this.#committer = new ResultCommitter({
      ...deps,
      limits: this.#limits,
      journal: this.#journal,
      now: () => this.now(),
      onReady: () => this.wake(),
      onCommitted: (observations, recorded) => this.#committed(observations, recorded),
    });
  }

  /** Whether the newest access to the ledger failed. */
  get isLedgerFailing(): boolean {
    return this.#committer.isLedgerFailing;
  }

  get isRunning(): boolean {
    return this.#running;
  }

  get scheduler(): Scheduler {
    return this.#deps.scheduler;
  }

  /**
   * Total duration (ms) of the upstream's outages and of the pauses it requested. Every time limit
   * is extended by it.
   */
  outageMs(): number {
    return this.#journal.outageMs(this.now());
  }

  /**
   * Returns the time, and handles a step of the clock: time limits are extended by the step, and
   * the request budget is treated as exhausted. It is unknown how much real time passed, so
   * requests sent before the step may still count at the upstream.
   */
  now(): number {
    const { clock, scheduler } = this.#deps;
    const now = clock.now();
    const skippedMs = clock.skippedMs?.() ?? 0;
    if (!this.#running || skippedMs === this.#skippedMs) return now;
    this.#journal.skip(skippedMs - this.#skippedMs, now);
    this.#limits.begin(now);
    this.#skippedMs = skippedMs;
    scheduler.limits.resumeBudget(now, now);
    try {
      // Committed now: a submission tracked later starts from a total that already includes this
      // step.
      this.#journal.writePause();
    } catch (error) {
      this.#committer.writeFailed(error);
    }
    return now;
  }

  /**
   * Continues with everything that the ledger has open. While the ledger is unavailable, for
   * example because the disk is full, the loop tries again every second. Throws what else the
   * ledger throws.
   */
  start(): void {
    const { scheduler, ledger, clock, upstream } = this.#deps;
    const now = clock.now();
    const read = () => ({
      record: ledger.upstream(upstream),
      shownId: ledger.findShownId(upstream),
      first: ledger.listWatched(upstream, { after: 0, limit: RESUME_PAGE_SIZE }),
    });
    let stored: ReturnType<typeof read>;
    try {
      stored = read();
    } catch (error) {
      if (!(error instanceof LedgerUnavailableError)) throw error;
      // It is unknown what the previous process sent.
      if (!this.#cancelResume) scheduler.limits.resumeBudget(now, now);
      this.#committer.writeFailed(error);
      this.#cancelResume = clock.after(WRITE_RETRY_MS, () => this.start());
      return;
    }
    const { record, shownId, first } = stored;
    this.#skippedMs = clock.skippedMs?.() ?? 0;
    this.#journal.restore(record, now);
    this.#limits.restore(shownId);
    if (record.pollingUntil !== null) scheduler.limits.resumeBudget(record.pollingUntil, now);
    if (record.snapshot !== null) scheduler.restore(record.snapshot);
    this.#running = true;
    this.#resume(first);
  }

  /**
   * Registers submissions page by page, so that the process serves callers in between; a million
   * submissions take seconds. Polling begins when all are registered: whether "not found" is
   * believed depends on what the upstream has shown before.
   */
  #resume({ watched, next }: ReturnType<WatcherLedger['listWatched']>): void {
    const { scheduler, clock } = this.#deps;
    const now = this.now();
    this.#committer.isLedgerFailing = false;
    for (const item of watched) scheduler.resume(item, now);
    this.#cancelResume = next === null ? undefined : clock.after(0, () => this.#resumeAfter(next));
    if (next !== null) return;
    for (const item of this.#retracked.splice(0)) scheduler.add(item, now);
    this.#limits.begin(now);
    this.wake();
  }

  #resumeAfter(after: number): void {
    const { ledger, clock, upstream, listener } = this.#deps;
    let page: ReturnType<WatcherLedger['listWatched']>;
    try {
      page = ledger.listWatched(upstream, { after, limit: RESUME_PAGE_SIZE });
    } catch (error) {
      this.#committer.isLedgerFailing = true;
      listener.writeFailed(error);
      this.#cancelResume = clock.after(WRITE_RETRY_MS, () => this.#resumeAfter(after));
      return;
    }
    this.#resume(page);
  }

  /**
   * Registers a submission. Before `start`, and while `#resume` registers older submissions,
   * `#resume` also registers new ones, because the ledger lists them last. A submission that is
   * tracked again is remembered, because the ledger may already have listed it. The caller wakes
   * the loop.
   */
  add(item: Paced, now: number, { isRetracked }: { isRetracked: boolean }): void {
    if (item.trackedAt < now - IMPORTED_MS) this.#committer.imported(item.submissionId, now);
    if (!this.#running) return;
    if (!this.#cancelResume) this.#deps.scheduler.add(item, now);
    else if (isRetracked) this.#retracked.push(item);
  }

  /**
   * Polls one submission on demand, tracked or not, within the request budget. Callers that request
   * the same submission share one poll. Clients take turns for the budget. The result of a tracked
   * submission is committed before the promise resolves, if the ledger is writable.
   */
  pollOnDemand(submissionId: string, client: string): Promise<OnDemandResult> {
    if (!this.#running) return Promise.resolve(NOT_POLLING);
    const result = this.#onDemand.poll(submissionId, client, this.now());
    this.wake();
    return result;
  }

  /**
   * Waits until the request budget has room for one request other than a poll, and charges it.
   * Fails at once while the circuit breaker is open. `release` must be called when a reserved
   * request has completed.
   */
  reserve(client: string, signal?: AbortSignal): Promise<ReservationResult> {
    if (!this.#running) return Promise.resolve(NOT_POLLING);
    const result = this.#onDemand.reserve(client, signal, this.now());
    this.wake();
    return result;
  }

  /** `pause`: the time of the next request as requested by the response. */
  release(pause: PauseRequest | undefined): void {
    this.#deps.scheduler.limits.complete(pause, this.now());
    this.#committer.writeJournal();
    this.wake();
  }

  /**
   * Sends the polls that are due, and sets the timer for the next ones. Called whenever something
   * has changed.
   */
  wake(): void {
    if (!this.#running) return;
    if (this.#isReady()) this.#send(this.#take(this.#deps.clock.now()));
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const wakeAt = this.#wakeAt();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#deps;
    this.#cancelTimer = clock.after(Math.max(1, wakeAt - clock.now()), () => this.wake());
  }

  /** Whether there are polls to send and they may be sent now. */
  #isReady(): boolean {
    if (this.#cancelResume) return false;
    const now = this.now();
    const isDue = () => this.#deps.scheduler.wakeAt() <= now || this.#onDemand.isWaiting;
    return now >= this.#committer.blockedUntil && this.#committer.extendPolling(now, isDue);
  }

  /**
   * Returns the submissions to poll now. The budget is charged for them, and for granted
   * reservations.
   */
  #take(now: number): string[] {
    const { scheduler } = this.#deps;
    const batch: string[] = [];
    for (;;) {
      const onDemand = this.#isOnDemandNext ? this.#onDemand.take(now) : undefined;
      const scheduled = onDemand === undefined ? scheduler.next(now, 1)[0] : undefined;
      const submissionId = onDemand ?? scheduled ?? this.#onDemand.take(now);
      if (submissionId === undefined) return batch;
      this.#isOnDemandNext = scheduled !== undefined;
      batch.push(submissionId);
    }
  }

  /** The earliest time of the next poll; Infinity: the loop waits for a result or a change. */
  #wakeAt(): number {
    if (this.#cancelResume) return Number.POSITIVE_INFINITY;
    const { scheduler } = this.#deps;
    const onDemandAt = this.#onDemand.isWaiting ? scheduler.nextPollAt() : Number.POSITIVE_INFINITY;
    return Math.max(this.#committer.blockedUntil, Math.min(onDemandAt, scheduler.wakeAt()));
  }

  #send(submissionIds: string[]): void {
    if (submissionIds.length === 0) return;
    const { engine, upstream } = this.#deps;
    const batch = engine.poll({ upstream, submissionIds }, this.#committer.add);
    const ended = batch.finally(() => this.#batches.delete(ended));
    this.#batches.add(ended);
  }

  /** Completes the on-demand polls that were waiting for these results. */
  #committed(observations: readonly Observation[], recorded: readonly RecordedObservation[]): void {
    const proof = this.#limits.neededProof(recorded, this.now());
    if (proof !== undefined) void this.pollOnDemand(proof, PROOF_CLIENT);
    for (const observation of observations) this.#onDemand.resolve(observation);
    this.#onDemand.refuseDuringOutage(this.now());
    this.wake();
  }

  /**
   * Sends no more polls, waits up to `limitMs` for results in flight and commits them. Later
   * results are dropped.
   */
  async stop(limitMs: number): Promise<void> {
    this.#cancelResume?.();
    if (!this.#running) return;
    this.#running = false;
    this.#cancelTimer?.();
    const { clock, listener } = this.#deps;
    await new Promise<void>((resolve) => {
      const cancelLimit = clock.after(limitMs, resolve);
      void Promise.all(this.#batches).then(() => {
        cancelLimit();
        resolve();
      });
    });
    this.#committer.close();
    try {
      this.#committer.recordPolling(this.now());
    } catch (error) {
      listener.writeFailed(error);
    }
    this.#onDemand.close();
  }
}
