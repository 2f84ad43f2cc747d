import { LedgerUnavailableError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Observation } from '../submissions/classify.ts';
import type { RecordedObservation, WatcherLedger } from '../submissions/ports.ts';
import { BreakerState } from '../submissions/upstream.ts';
import { FinalityBounds, finalitiesOf } from './finality.ts';
import type { WatcherListener } from './listeners.ts';
import type { OutageJournal } from './outage-journal.ts';
import type { Scheduler } from './scheduler.ts';
import type { TimeLimits } from './time-limits.ts';

/**
 * How long nothing is polled after the ledger rejected a write: results that cannot be committed
 * are wasted requests.
 */
export const WRITE_RETRY_MS = 1_000;
/**
 * How far ahead the ledger records that the process is polling, so that it is written once a minute
 * instead of once per poll.
 */
const POLL_AHEAD_MS = 60_000;
/**
 * A wait for the disk that is longer is no time without a response of the upstream. A sync takes
 * milliseconds, and one is waited for each minute.
 */
const HANGING_MS = 10_000;
/**
 * When a submission is polled again whose result is rejected although the ledger is writable: a
 * defect of dawatch.
 */
const POISON_RETRY_MS = 60_000;

type ResultCommitterDeps = {
  scheduler: Scheduler;
  upstream: string;
  ledger: Pick<WatcherLedger, 'record' | 'recordPolling' | 'whenDurable'>;
  clock: Clock;
  recheck: boolean;
  limits: TimeLimits;
  journal: OutageJournal;
  now: () => number;
  listener: Required<WatcherListener>;
  /** Called when polls may be sent again. */
  onReady: () => void;
  /** Called last, with all observations of a commit and those that were recorded. */
  onCommitted: (
    observations: readonly Observation[],
    recorded: readonly RecordedObservation[],
  ) => void;
};

/**
 * Commits the results of polls. Observations that arrive in one turn of the event loop share one
 * transaction. After the commit the scheduler chooses the next poll times, and the listeners are
 * called.
 *
 * If the ledger rejects a write, the observations are dropped and their submissions are polled
 * again.
 */
export class ResultCommitter {
  readonly #deps: ResultCommitterDeps;
  readonly #finalityBounds = new FinalityBounds();
  #arrived: Observation[] = [];
  #cancelCommit: (() => void) | undefined;
  /** Whether the newest access to the ledger failed. */
  isLedgerFailing = false;
  #blockedUntil = 0;
  #pollingUntil = Number.NEGATIVE_INFINITY;
  /**
   * Whether the newest record of polling is not on the disk yet: after a power failure, the next
   * process would not know of the polls.
   */
  #isWaiting = false;
  #isClosed = false;

  constructor(deps: ResultCommitterDeps) {
    this.#deps = deps;
  }

  /** Until when nothing is polled because a write failed; Infinity: until `onReady` is called. */
  get blockedUntil(): number {
    return this.#isWaiting ? Number.POSITIVE_INFINITY : this.#blockedUntil;
  }

  /**
   * Returns whether polls may be sent now; false also if none `isDue`. The ledger records until
   * when this process may be polling, so that the next process knows which part of the budget may
   * already be spent. The record is written ahead, with the scheduler's snapshot, and polls wait
   * until it is on the disk. It is written again after a failed write: while results cannot be
   * committed, nothing is polled.
   */
  extendPolling(now: number, isDue: () => boolean): boolean {
    if (now < this.#pollingUntil && !this.isLedgerFailing) return true;
    if (!isDue()) return false;
    try {
      this.recordPolling(now + POLL_AHEAD_MS);
      this.#pollingUntil = now + POLL_AHEAD_MS;
      this.isLedgerFailing = false;
      this.#waitForDisk();
      return !this.#isWaiting;
    } catch (error) {
      this.writeFailed(error);
      return false;
    }
  }

  #waitForDisk(): void {
    const { ledger, limits, now, onReady } = this.#deps;
    const startedAt = now();
    const durable = ledger.whenDurable();
    this.#isWaiting = durable !== undefined;
    const onDurable = () => {
      this.#isWaiting = false;
      if (this.#isClosed) return;
      if (now() - startedAt >= HANGING_MS) limits.begin(now());
      onReady();
    };
    // After a failed sync the process ends.
    void durable?.then(onDurable, () => undefined);
  }

  /** Throws what the ledger throws. */
  recordPolling(until: number): void {
    const { ledger, upstream, scheduler, journal } = this.#deps;
    ledger.recordPolling(upstream, until, scheduler.snapshot());
    journal.writePause();
  }

  /** Records that a submission that another system tracked before is polled from `now` on. */
  imported(submissionId: string, now: number): void {
    this.#finalityBounds.begin(submissionId, now);
  }

  /** Receives a result of the engine. */
  readonly add = (observation: Observation): void => {
    if (this.#isClosed) return;
    const { upstream, clock, listener } = this.#deps;
    listener.polled(upstream, observation);
    this.#arrived.push(observation);
    this.#cancelCommit ??= clock.after(0, () => this.#commit());
  };

  /** Commits everything that has arrived. Later results are dropped. */
  close(): void {
    this.#commit();
    this.#isClosed = true;
  }

  #commit(): void {
    this.#cancelCommit?.();
    this.#cancelCommit = undefined;
    const observations = this.#arrived;
    if (observations.length === 0) return;
    this.#arrived = [];
    const { limits, listener, onCommitted } = this.#deps;
    limits.observe(observations);
    const recorded = this.#record(observations);
    this.writeJournal();
    for (const entry of recorded) listener.recorded(entry);
    onCommitted(observations, recorded);
  }

  #breakerChanged(state: BreakerState, now: number): void {
    this.#deps.journal.breakerChanged(state, now);
    if (state === BreakerState.closed) this.#deps.limits.begin(now);
  }

  /** Writes the outages and pauses that the ledger does not have yet. */
  writeJournal(): void {
    try {
      this.#deps.journal.write(this.#deps.now());
    } catch (error) {
      this.writeFailed(error);
    }
  }

  /**
   * Stops polling for a while if the ledger cannot be written, and reschedules the submissions of
   * dropped observations.
   */
  writeFailed(error: unknown, dropped: readonly Observation[] = []): void {
    const { scheduler, listener } = this.#deps;
    const now = this.#deps.now();
    this.isLedgerFailing ||= error instanceof LedgerUnavailableError;
    if (this.isLedgerFailing) this.#blockedUntil = now + WRITE_RETRY_MS;
    const retryAt = now + (this.isLedgerFailing ? WRITE_RETRY_MS : POISON_RETRY_MS);
    for (const { submissionId } of dropped) scheduler.retry(submissionId, retryAt, now);
    listener.writeFailed(error);
  }

  #record(observations: readonly Observation[]): RecordedObservation[] {
    const { ledger, limits, recheck, scheduler, listener } = this.#deps;
    const openUntil = this.#finalityBounds.openUntil(observations, scheduler);
    let recorded: RecordedObservation[];
    // Only the commit is guarded: an error after it must not record the same observations again.
    try {
      const context = { ...limits.context(this.#deps.now(), this.#blockedUntil), recheck };
      recorded = ledger.record(observations, context, openUntil);
    } catch (error) {
      // One transaction each, so that an observation that cannot be recorded does not affect the
      // others.
      if (observations.length > 1 && !(error instanceof LedgerUnavailableError))
        return observations.flatMap((one) => this.#record([one]));
      this.writeFailed(error, observations);
      return [];
    }
    this.isLedgerFailing = false;
    this.#schedule(observations, recorded);
    for (const finality of finalitiesOf(recorded, openUntil)) listener.finalized(finality);
    return recorded;
  }

  #schedule(observations: readonly Observation[], recorded: readonly RecordedObservation[]): void {
    const { scheduler } = this.#deps;
    const now = this.#deps.now();
    const newest = new Map(recorded.map(({ submission }) => [submission.submissionId, submission]));
    for (const observation of observations) {
      const state = scheduler.observe(
        observation,
        newest.get(observation.submissionId)?.watched ?? false,
        now,
      );
      if (state !== null) this.#breakerChanged(state, now);
    }
    // An on-demand poll may find that a finalized submission has changed: it is rechecked, as after
    // any finality.
    for (const submission of newest.values())
      if (submission.watched && submission.finalizedAt !== null)
        scheduler.resume({ ...submission, seen: true, finalizedAt: now }, now);
  }
}
