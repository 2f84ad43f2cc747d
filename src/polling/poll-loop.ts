import { LedgerError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Observation } from '../submissions/classify.ts';
import { UpstreamEventType } from '../submissions/event-types.ts';
import { finalizationsOf } from '../submissions/ledger-stats.ts';
import type { RecordedChange, Verdict } from '../submissions/store-results.ts';
import { isFinal, isHeld, type Submission } from '../submissions/submission.ts';
import { contextOfRequest } from '../submissions/transition.ts';
import { BreakerState, type UpstreamChange } from '../submissions/upstream.ts';
import { Deadlines, type PollingStores, Registration } from './deadlines.ts';
import { DetectionLags } from './detection.ts';
import type { WatcherListener } from './listeners.ts';
import { NOT_POLLING, OnDemandPolls, type OnDemandResult } from './on-demand-polls.ts';
import type { PollEngine } from './poll-engine.ts';
import type { Paced } from './poll-queues.ts';
import type { Scheduler } from './scheduler.ts';

type PollLoopDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: PollingStores;
  engine: PollEngine;
  clock: Clock;
  recheck: boolean;
  listener: Required<WatcherListener>;
};

/** A new submission that has been tracked for longer than this was tracked by another system. */
const IMPORTED_MS = 60_000;
/** Pause after a rejected write: results that cannot be committed are wasted requests. */
const WRITE_RETRY_MS = 1_000;
/** How far ahead polling is recorded, so that it is written once a minute, not for each poll. */
const AHEAD_MS = 60_000;
/** Delay after a result is rejected although the ledger is writable: a defect of dawatch. */
const POISON_RETRY_MS = 60_000;

/**
 * The loop of one upstream: scheduler → engine → ledger → scheduler.
 *
 *     idle        before `start`; waits while the ledger cannot be read
 *     resuming    registers the open submissions of the ledger, page by page
 *     polling     each round is started by a timer, a result, or a change. While the ledger rejects
 *                 writes, no polls are sent
 *     stopping    after `stop`: sends nothing, and commits results in flight
 *     stopped     drops results
 *
 * A loop is started and stopped once. A new process rebuilds its memory from the ledger.
 *
 * Observations that arrive in one turn of the event loop share one transaction. After the commit,
 * the scheduler chooses the next poll times, and the listeners are called. If the ledger rejects a
 * write, the observations are dropped and their submissions are polled again.
 */
export class PollLoop {
  readonly #deps: PollLoopDeps;
  readonly scheduler: Scheduler;
  readonly #deadlines: Deadlines;
  readonly #registration: Registration;
  readonly #onDemand: OnDemandPolls;
  readonly #detectionLags = new DetectionLags();
  readonly #batches = new Set<Promise<void>>();
  #running = false;
  #stopped = false;
  /** On-demand and scheduled polls alternate, so that neither kind starves the other. */
  #isOnDemandNext = false;
  #endSteps: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #arrived: Observation[] = [];
  #cancelCommit: (() => void) | undefined;
  #isLedgerFailing = false;
  /** Until when nothing is polled because a write failed. */
  #retryAt = 0;
  /** Until when the ledger says that this process may be polling. */
  #recordedUntil = Number.NEGATIVE_INFINITY;
  /** Changes of the upstream that are not in the ledger yet. */
  readonly #changes: UpstreamChange[] = [];
  /** The end of the pause that the ledger has. */
  #storedPause = 0;
  /** The start of the newest pause that listeners know. */
  #reportedPause = 0;

  constructor(deps: PollLoopDeps) {
    this.#deps = deps;
    this.scheduler = deps.scheduler;
    const onFailed = (error: unknown) => this.#writeFailed(error);
    this.#deadlines = new Deadlines({ ...deps, onFailed });
    this.#registration = new Registration({
      ...deps,
      retryMs: WRITE_RETRY_MS,
      onPage: () => this.#ledgerWorks(),
      onFailed,
      onEnd: this.#onRegistered,
    });
    const isLedgerAvailable = () => deps.clock.now() >= this.#retryAt;
    this.#onDemand = new OnDemandPolls({ ...deps, isLedgerAvailable });
  }

  get isLedgerFailing(): boolean {
    return this.#isLedgerFailing;
  }

  get isRunning(): boolean {
    return this.#running;
  }

  /**
   * Continues with everything open in the ledger; tries again every second while that is
   * unavailable. Throws its other errors.
   */
  start(): void {
    const { scheduler, ledger, clock, upstream } = this.#deps;
    const now = clock.now();
    const read = () => ({
      record: ledger.upstreams.get(upstream),
      returnedId: ledger.submissions.findShownId(upstream),
      first: this.#registration.read(),
    });
    let stored: ReturnType<typeof read>;
    try {
      stored = read();
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      // It is unknown what the previous process sent.
      if (!this.#registration.isRunning) scheduler.resumeBudget(now, now);
      this.#writeFailed(error);
      this.#registration.retry(() => this.start());
      return;
    }
    const { record, returnedId, first } = stored;
    scheduler.health.restore(record, returnedId, now);
    this.#storedPause = record.pausedUntil ?? 0;
    if (record.pollingUntil !== null) scheduler.resumeBudget(record.pollingUntil, now);
    if (record.snapshot !== null) scheduler.restore(record.snapshot);
    this.#running = true;
    this.#endSteps = clock.onStep?.((stepMs, at) => {
      if (stepMs < 0) return;
      // The real time that passed is unknown: passed deadlines wait for an answer anew.
      this.#deadlines.begin(at);
      scheduler.skip(stepMs, at);
    });
    this.#registration.run(first);
  }

  readonly #onRegistered = (): void => {
    this.#deadlines.begin(this.#deps.clock.now());
    this.wake();
  };

  /**
   * Registers a submission. During the registration at the start, that does it: the ledger lists it
   * last. The caller wakes the loop.
   */
  add(item: Paced, now: number, { isRetracked }: { isRetracked: boolean }): void {
    if (item.trackedAt < now - IMPORTED_MS) this.#detectionLags.begin(item.submissionId, now);
    if (!this.#running) return;
    const { scheduler } = this.#deps;
    if (!this.#registration.isRunning) scheduler.add(item, now);
    else if (isRetracked) this.#registration.addRetracked(item);
    // It is likely to be final already.
    if (isRetracked) scheduler.pollBy(item.submissionId, now);
  }

  /** Ends the submission at its deadline, which is new. The caller wakes the loop. */
  addDeadline(submission: Submission): void {
    const { submissionId, deadlineAt } = submission;
    if (this.#running) this.#deadlines.add(submissionId, deadlineAt, this.#deps.clock.now());
  }

  /**
   * Polls any submission within the request budget. Concurrent callers share one poll. A tracked
   * result is committed before the promise resolves, if the ledger is writable.
   */
  pollOnDemand(submissionId: string): Promise<OnDemandResult> {
    if (!this.#running) return Promise.resolve(NOT_POLLING);
    const result = this.#onDemand.poll(submissionId, this.#deps.clock.now());
    this.wake();
    return result;
  }

  /** Sends the polls that are due, and sets the timer. Called whenever something has changed. */
  wake(): void {
    if (!this.#running) return;
    this.#writeHealth();
    this.#passDeadlines();
    if (this.#isReady()) this.#send(this.#take(this.#deps.clock.now()));
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const wakeAt = this.#wakeAt();
    if (wakeAt === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#deps;
    this.#cancelTimer = clock.after(Math.max(1, wakeAt - clock.now()), () => this.wake());
  }

  /** Acts on deadlines that have passed. Results that have arrived decide first. */
  #passDeadlines(): void {
    const now = this.#deps.clock.now();
    const isPolling = this.#running && !this.#registration.isRunning && !this.#isLedgerFailing;
    if (!isPolling || now < this.#retryAt || !this.#deadlines.isDue(now)) return;
    const { listener, scheduler } = this.#deps;
    this.#store();
    if (this.#isLedgerFailing) return;
    try {
      for (const ended of this.#deadlines.pass(now)) {
        scheduler.remove(ended.submission.submissionId, now);
        listener.expired(ended);
      }
    } catch (error) {
      this.#writeFailed(error);
    }
  }

  #isReady(): boolean {
    if (this.#registration.isRunning) return false;
    const now = this.#deps.clock.now();
    const isDue = () => this.#wakeAt() <= now || this.#onDemand.isWaiting;
    return now >= this.#retryAt && this.#extendPolling(now, isDue);
  }

  /** Returns whether polls may be sent now. After a failed write, tries one first. */
  #extendPolling(now: number, isDue: () => boolean): boolean {
    if (now < this.#recordedUntil && !this.#isLedgerFailing) return true;
    if (!isDue()) return false;
    try {
      this.#recordPolling(now + AHEAD_MS);
      this.#recordedUntil = now + AHEAD_MS;
      this.#ledgerWorks();
      return true;
    } catch (error) {
      this.#writeFailed(error);
      return false;
    }
  }

  /**
   * Records until when this process may poll, and what the scheduler has learned, for the next
   * process.
   */
  #recordPolling(until: number): void {
    const { ledger, upstream, scheduler } = this.#deps;
    ledger.upstreams.setPolling(upstream, until, scheduler.snapshot());
  }

  #ledgerWorks(): void {
    if (!this.#isLedgerFailing) return;
    this.#isLedgerFailing = false;
    this.#deadlines.begin(this.#deps.clock.now());
    this.#deps.listener.ledgerRecovered();
  }

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
    if (this.#registration.isRunning) return Number.POSITIVE_INFINITY;
    const { scheduler } = this.#deps;
    const onDemandAt = this.#onDemand.isWaiting ? scheduler.nextPollAt() : Number.POSITIVE_INFINITY;
    const { wakeAt } = this.#deadlines;
    return Math.max(this.#retryAt, Math.min(onDemandAt, scheduler.wakeAt(), wakeAt));
  }

  #send(submissionIds: string[]): void {
    if (submissionIds.length === 0) return;
    const { engine, upstream } = this.#deps;
    const batch = engine.poll({ upstream, submissionIds }, this.#receive);
    const ended = batch.finally(() => this.#batches.delete(ended));
    this.#batches.add(ended);
  }

  readonly #receive = (observation: Observation): void => {
    if (this.#stopped) return;
    const { upstream, clock, listener } = this.#deps;
    listener.polled(upstream, observation);
    this.#arrived.push(observation);
    this.#cancelCommit ??= clock.after(0, () => this.#commit());
  };

  #commit(): void {
    if (this.#store()) this.wake();
  }

  /**
   * Commits what has arrived, and completes its on-demand polls. Returns whether anything has
   * arrived.
   */
  #store(): boolean {
    this.#cancelCommit?.();
    this.#cancelCommit = undefined;
    const observations = this.#arrived;
    if (observations.length === 0) return false;
    this.#arrived = [];
    const recorded = this.#record(observations);
    this.#writeHealth();
    for (const entry of recorded) this.#deps.listener.recorded(entry);
    for (const observation of observations) this.#onDemand.resolve(observation);
    this.#onDemand.refuseDuringOutage(this.#deps.clock.now());
    return true;
  }

  #record(observations: readonly Observation[]): RecordedChange[] {
    const { ledger, recheck, scheduler, listener } = this.#deps;
    const detections = this.#detectionLags.detect(observations, scheduler, this.#deps.clock.now());
    let recorded: RecordedChange[];
    // Only the commit is guarded: an error after it must not record the same observations again.
    try {
      const { upSince, provenAt } = scheduler.health;
      const context = { now: this.#deps.clock.now(), upSince, provenAt, recheck };
      // The others only test the upstream.
      const polled = observations.filter(
        ({ submissionId: id }) => scheduler.find(id) || this.#onDemand.isOpen(id),
      );
      recorded = ledger.store.record(polled, context, detections);
    } catch (error) {
      // One transaction each: one that cannot be recorded must not affect the others.
      if (observations.length > 1 && !(error instanceof LedgerError))
        return observations.flatMap((one) => this.#record([one]));
      this.#writeFailed(error, observations);
      return [];
    }
    this.#ledgerWorks();
    this.#schedule(observations, recorded);
    for (const one of finalizationsOf(recorded)) listener.finalized(one);
    return recorded;
  }

  #schedule(observations: readonly Observation[], recorded: readonly RecordedChange[]): void {
    const { scheduler } = this.#deps;
    const now = this.#deps.clock.now();
    const newest = new Map(recorded.map(({ submission }) => [submission.submissionId, submission]));
    for (const observation of observations) {
      const { watched = false } = newest.get(observation.submissionId) ?? {};
      const { since, reason } = scheduler.health;
      const state = scheduler.observe(observation, watched, now);
      this.#deadlines.observe(observation);
      if (state !== null) this.#changes.push(this.#changeOf(state, { since, reason }, now));
    }
    if (recorded.some(({ result }) => result.needsProof)) scheduler.health.wantProof();
    for (const submission of newest.values()) {
      const isFixed =
        submission.finalizedAt !== null || scheduler.awaitsRecheck(submission.submissionId);
      if (submission.watched && isFixed) this.#resume(submission, now);
    }
  }

  /** A finalized submission that has changed is rechecked, as after any finality. */
  #resume(submission: Submission, now: number): void {
    const finalizedAt = submission.finalizedAt && now;
    const item = { ...submission, seen: true, isHeld: isHeld(submission), finalizedAt };
    this.#deps.scheduler.resume(item, now);
  }

  /** Records verdicts of the chain; nothing while the ledger fails, or the loop does not run. */
  recordVerdicts(verdicts: readonly Verdict[]): RecordedChange[] {
    const { scheduler, ledger, recheck, listener } = this.#deps;
    if (!this.#running || verdicts.length === 0) return [];
    const now = this.#deps.clock.now();
    let recorded: RecordedChange[];
    try {
      recorded = ledger.store.verify(verdicts, { ...contextOfRequest(now), recheck });
    } catch (error) {
      // As for observations.
      if (verdicts.length > 1 && !(error instanceof LedgerError))
        return verdicts.flatMap((one) => this.recordVerdicts([one]));
      this.#writeFailed(error);
      return [];
    }
    for (const one of recorded) {
      const { submission } = one;
      if (!submission.watched) scheduler.remove(submission.submissionId, now);
      else if (isFinal(submission.status)) this.#resume(submission, now);
      listener.recorded(one);
    }
    for (const one of finalizationsOf(recorded)) listener.finalized(one);
    this.wake();
    return recorded;
  }

  /** Returns the change of the upstream to a state. `before`: its outage, if it had one. */
  #changeOf(
    state: BreakerState,
    before: { since: number; reason: string | null },
    at: number,
  ): UpstreamChange {
    const { health } = this.scheduler;
    const isUp = state === BreakerState.up;
    return {
      upstream: this.#deps.upstream,
      at,
      event: UpstreamEventType[state],
      reason: (isUp ? before.reason : health.reason) ?? '',
      lastedMs: isUp ? at - before.since : 0,
      record: { state, outSince: isUp ? null : health.since },
    };
  }

  /** Writes the changes of the upstream that the ledger does not have yet. */
  #writeHealth(): void {
    const { ledger, listener, scheduler, upstream } = this.#deps;
    try {
      for (let change = this.#changes[0]; change; change = this.#changes[0]) {
        ledger.upstreams.recordOutage(change);
        this.#changes.shift();
        listener.upstream(change);
      }
      const { pausedUntil, pausedSince, isPauseLong, reason } = scheduler.health;
      if (isPauseLong && pausedSince !== this.#reportedPause) {
        this.#reportedPause = pausedSince;
        listener.paused({ upstream, until: pausedUntil, reason });
      }
      if (pausedUntil <= this.#storedPause) return;
      ledger.upstreams.setPause(upstream, pausedUntil, reason);
      this.#storedPause = pausedUntil;
    } catch (error) {
      this.#writeFailed(error);
    }
  }

  /** Pauses polling if the ledger cannot be written, and reschedules dropped observations. */
  #writeFailed(error: unknown, dropped: readonly Observation[] = []): void {
    const { scheduler, listener } = this.#deps;
    const now = this.#deps.clock.now();
    this.#isLedgerFailing ||= error instanceof LedgerError;
    if (this.#isLedgerFailing) this.#retryAt = now + WRITE_RETRY_MS;
    const retryAt = now + (this.#isLedgerFailing ? WRITE_RETRY_MS : POISON_RETRY_MS);
    for (const { submissionId } of dropped) scheduler.retry(submissionId, retryAt, now);
    listener.writeFailed(error);
  }

  /**
   * Sends no more polls, waits up to `limitMs` for results and commits them. Later ones are
   * dropped.
   */
  async stop(limitMs: number): Promise<void> {
    this.#registration.cancel();
    if (!this.#running) return;
    this.#running = false;
    this.#endSteps?.();
    this.#cancelTimer?.();
    const { clock, listener } = this.#deps;
    await new Promise<void>((resolve) => {
      const cancelLimit = clock.after(limitMs, resolve);
      void Promise.all(this.#batches).then(() => {
        cancelLimit();
        resolve();
      });
    });
    this.#commit();
    this.#stopped = true;
    try {
      this.#recordPolling(this.#deps.clock.now());
    } catch (error) {
      listener.writeFailed(error);
    }
    this.#onDemand.close();
  }
}
