import { LedgerError, type LedgerUnavailableError } from '../ledger/errors.ts';
import { MAX_RETRY_AFTER_MS } from '../lib/retry-after.ts';
import { iso } from '../lib/timestamps.ts';
import type { Observation } from '../submissions/classify.ts';
import { type Delay, DelayCause, reasonOf } from '../submissions/delay.ts';
import { UpstreamEventType } from '../submissions/event-types.ts';
import {
  BreakerState,
  type PauseRecord,
  type UpstreamChange,
  type UpstreamRecord,
} from '../submissions/upstream.ts';
import { CAUSE_OF, DelayLog } from './delay-log.ts';
import type { WatcherListener } from './listeners.ts';
import { AHEAD_MS } from './polling-record.ts';
import type { Scheduler } from './scheduler.ts';

/**
 * The total time in which an upstream could not be polled: outages (the circuit breaker was open),
 * pauses (the upstream sent Retry-After), and steps of the clock (the machine slept). Every time
 * limit moves by this total. Overlapping outages and pauses count once: the start of an outage ends
 * the pause, whose rest counts again after the outage.
 */
export class OutageClock {
  #pastMs = 0;
  #outSince: number | null = null;
  #pause: { since: number; until: number } | null = null;

  /**
   * Continues from the record of an earlier process. A time in the future was written by a clock
   * that was ahead.
   */
  restore(record: PauseRecord & { outSince: number | null }, now: number): void {
    const { outageMs, outSince, pausedSince, pausedUntil } = record;
    this.#pastMs = outageMs;
    this.#outSince = outSince === null ? null : Math.min(outSince, now);
    if (pausedSince !== null && pausedUntil !== null)
      this.#pause = { since: Math.min(pausedSince, now), until: pausedUntil };
  }

  totalMs(now: number): number {
    const outMs = this.#outSince === null ? 0 : Math.max(0, now - this.#outSince);
    return this.#pastMs + outMs + this.#pausedMs(now);
  }

  /** Has no effect during an outage. */
  outageBegins(at: number): void {
    if (this.#outSince !== null) return;
    this.#pastMs += this.#pausedMs(at);
    this.#pause = null;
    this.#outSince = at;
  }

  outageEnds(at: number): void {
    if (this.#outSince === null) return;
    this.#pastMs += Math.max(0, at - this.#outSince);
    this.#outSince = null;
  }

  /** Sets the end of the pause. Returns whether the pause changed. */
  pauses(until: number, now: number): boolean {
    if (this.#pause && this.#pause.until <= now) {
      this.#pastMs += this.#pausedMs(now);
      this.#pause = null;
    }
    if (this.#outSince !== null || until <= now || this.#pause?.until === until) return false;
    this.#pause = { since: this.#pause?.since ?? now, until };
    return true;
  }

  /** Adds a step of the clock: the machine slept, or its clock was set forward. */
  skips(from: number, to: number): void {
    if (this.#outSince !== null || (this.#pause && this.#pause.until >= to)) return;
    const pausedUntil = this.#pause?.until ?? from;
    this.#pastMs += this.#pausedMs(to) + to - Math.max(from, pausedUntil);
    this.#pause = null;
  }

  get outSince(): number | null {
    return this.#outSince;
  }

  get record(): PauseRecord {
    const { since = null, until = null } = this.#pause ?? {};
    return { outageMs: this.#pastMs, pausedSince: since, pausedUntil: until };
  }

  #pausedMs(now: number): number {
    return this.#pause ? Math.max(0, Math.min(now, this.#pause.until) - this.#pause.since) : 0;
  }
}

const EVENT_OF = {
  [BreakerState.up]: UpstreamEventType.up,
  [BreakerState.down]: UpstreamEventType.down,
  [BreakerState.unauthorized]: UpstreamEventType.unauthorized,
} as const satisfies Record<BreakerState, UpstreamEventType>;

/** Failures that end before the circuit breaker opens are a delay if they last this long. */
const FAILING_MS = 10_000;
/**
 * A poll that waits for the request budget for longer than this is late. It ends below half of it,
 * so that waits of about this time are one delay.
 */
const BUDGET_WAIT_MS = 5_000;
const SERVER_DOWN = 'the server did not run';

/** Consecutive failures, of one submission or of several. */
type Failing = { since: number; submissionId: string; isShared: boolean };

/** Whether a submission is late because of the failures. */
function concerns({ isShared, submissionId }: Failing, other: string): boolean {
  return isShared || submissionId === other;
}

/** The newest polls of a submission, which have all failed. `reason`: the last response. */
type OwnFailures = { since: number; count: number; reason: string };
/** Submissions whose failures are remembered. */
const MAX_FAILING = 1_000;

type OutageJournalDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: {
    recordUpstream(change: UpstreamChange): void;
    recordPause(upstream: string, pause: PauseRecord): void;
    recordDelays(upstream: string, delays: readonly Delay[]): void;
  };
  listener: Required<WatcherListener>;
};

/**
 * Keeps the outages and pauses of one upstream in the ledger, so that time limits exclude them
 * after a restart too, and why its submissions were polled late. A change that the ledger rejects
 * stays in the journal and is written by a later `write`.
 */
export class OutageJournal {
  readonly #deps: OutageJournalDeps;
  readonly #clock = new OutageClock();
  readonly delays = new DelayLog();
  /** Changes of the circuit breaker that are not in the ledger yet. */
  readonly #unwritten: UpstreamChange[] = [];
  #isPauseUnwritten = false;
  /** The newest response that failed or requested a pause. */
  #reason = '';
  #failing: Failing | null = null;
  /** By submission id. */
  readonly #ownFailures = new Map<string, OwnFailures>();
  /** When the earlier process certainly ran, epoch ms; null: there was none. */
  #aliveAt: number | null = null;

  constructor(deps: OutageJournalDeps) {
    this.#deps = deps;
  }

  /** Continues the outage, the pause and the delays that an earlier process recorded. */
  restore(record: UpstreamRecord, delays: readonly Delay[], now: number): void {
    const { scheduler } = this.#deps;
    const { breaker } = scheduler.limits;
    this.#clock.restore(record, now);
    this.delays.restore(delays, record, now);
    this.#aliveAt = record.pollingUntil === null ? null : record.pollingUntil - AHEAD_MS;
    if (record.outSince !== null)
      breaker.restore(record.state, Math.min(record.outSince, now), now);
    // A process whose clock was ahead may have recorded a pause that ends too late.
    if (record.pausedUntil !== null)
      scheduler.limits.pause.restore(Math.min(record.pausedUntil, now + MAX_RETRY_AFTER_MS));
  }

  /** Notes that the server stops, and writes everything. Throws what the ledger throws. */
  stop(now: number): void {
    this.delays.begin(DelayCause.serverDown, SERVER_DOWN, { beganAt: now, endedAt: null });
    this.write(now);
  }

  /** Notes that the server polls again. `newestPollAt`: of open submissions, before the start. */
  resume(newestPollAt: number, now: number): void {
    if (this.delays.end(DelayCause.serverDown, now) || this.#aliveAt === null) return;
    // The earlier process was killed.
    const beganAt = Math.min(now, Math.max(this.#aliveAt, newestPollAt));
    this.delays.begin(DelayCause.serverDown, SERVER_DOWN, { beganAt, endedAt: now });
  }

  /** Total duration of all outages and pauses until `now`. Every time limit moves by it. */
  outageMs(now: number): number {
    return this.#clock.totalMs(now);
  }

  /** Adds a step of the clock, during which nothing was polled. */
  skip(skippedMs: number, now: number): void {
    this.#clock.skips(now - skippedMs, now);
    this.#isPauseUnwritten = true;
    this.delays.begin(DelayCause.clockStepped, 'the machine slept, or its clock was set forward', {
      beganAt: now - skippedMs,
      endedAt: now,
    });
  }

  /** Notes that no result can be stored. The message of the error names the file. */
  ledgerFails(error: LedgerUnavailableError, now: number): void {
    const isFull = error instanceof LedgerError && error.problem === 'full';
    const reason = isFull ? 'the disk is full' : 'the ledger cannot be written';
    this.delays.begin(DelayCause.ledgerUnavailable, reason, { beganAt: now, endedAt: null });
  }

  /**
   * Returns the newest delays of a submission that overlap the time, oldest first; the last one are
   * the failures that may open the circuit breaker, unless they are those of another submission, or
   * those of this one alone.
   */
  delaysBetween(submissionId: string, from: number, until: number): Delay[] {
    const delays = this.delays.overlapping(from, until);
    if (this.#deps.scheduler.limits.breaker.isOpen) return delays;
    const failing = this.#failing;
    const own = this.#ownFailures.get(submissionId);
    let shown =
      failing && concerns(failing, submissionId)
        ? { since: failing.since, reason: this.#reason }
        : undefined;
    // Other submissions have got responses since its first failure.
    if (own && own.count > 1 && own.since + FAILING_MS < (shown?.since ?? until))
      shown = { since: own.since, reason: `${own.reason}, ${own.count} times` };
    if (!shown || shown.since >= until) return delays;
    const { since, reason } = shown;
    const cause = DelayCause.upstreamDown;
    return [...delays, { cause, reason, beganAt: Math.round(since), endedAt: null }];
  }

  /** Returns the last response about a submission and how often it failed; null: it did not. */
  lastFailureOf(submissionId: string): string | null {
    const own = this.#ownFailures.get(submissionId);
    if (!own) return null;
    const { reason, count, since } = own;
    return count === 1 ? reason : `${reason}, ${count} times since ${iso(Math.round(since))}`;
  }

  /** Forgets the failures of a submission that has ended. */
  ended(submissionId: string): void {
    this.#ownFailures.delete(submissionId);
  }

  #noteOwnFailure(observation: Observation): void {
    const { kind, submissionId, at } = observation;
    const isFailure = kind === 'unavailable' || kind === 'unauthorized';
    const before = this.#ownFailures.get(submissionId);
    this.#ownFailures.delete(submissionId);
    if (!isFailure) return;
    const count = (before?.count ?? 0) + 1;
    const since = before?.since ?? at;
    this.#ownFailures.set(submissionId, { since, count, reason: reasonOf(observation) });
    const [oldest] = this.#ownFailures.keys();
    if (this.#ownFailures.size > MAX_FAILING && oldest) this.#ownFailures.delete(oldest);
  }

  /** The newest response of an outage, also of an earlier process; null: there is no outage. */
  get outageReason(): string | null {
    const { state } = this.#deps.scheduler.limits.breaker;
    if (state === BreakerState.up) return null;
    return this.#reason || (this.delays.lasting(CAUSE_OF[state])?.reason ?? null);
  }

  /** Notes why the upstream requests a pause. */
  noteReason(reason: string): void {
    this.#reason = reason;
  }

  /**
   * Adds what an observation means for the upstream, to be written by `write`. `state`: the new
   * state of the circuit breaker; null: it has not changed.
   */
  observed(observation: Observation, state: BreakerState | null, now: number): void {
    const { breaker, pause } = this.#deps.scheduler.limits;
    const { submissionId } = observation;
    this.#noteOwnFailure(observation);
    const { failingSince } = breaker;
    const ended = this.#failing;
    this.#failing =
      failingSince === null
        ? null
        : { since: failingSince, submissionId, isShared: breaker.failed.size > 1 };
    if (failingSince !== null || now < pause.until) this.#reason = reasonOf(observation);
    if (state !== null) this.#breakerChanged(state, ended?.since ?? now, now);
    else if (failingSince !== null || !ended || now - ended.since < FAILING_MS) return;
    else if (concerns(ended, submissionId)) {
      const delay = { beganAt: ended.since, endedAt: now };
      this.delays.begin(DelayCause.upstreamDown, this.#reason, delay);
    }
  }

  #breakerChanged(state: BreakerState, failingSince: number, now: number): void {
    const { scheduler, upstream } = this.#deps;
    const ended =
      this.delays.end(DelayCause.upstreamDown, now) ?? this.delays.end(DelayCause.keyRefused, now);
    if (state === BreakerState.up) this.#clock.outageEnds(now);
    else {
      this.#clock.outageBegins(scheduler.limits.breaker.openedAt);
      const beganAt = ended ? now : failingSince;
      this.delays.begin(CAUSE_OF[state], this.#reason, { beganAt, endedAt: null });
    }
    const record = { state, outSince: this.#clock.outSince, outageMs: this.#clock.record.outageMs };
    this.#unwritten.push({
      upstream,
      at: now,
      event: EVENT_OF[state],
      reason: state === BreakerState.up ? (ended?.reason ?? '') : this.#reason,
      lastedMs: ended ? now - ended.beganAt : 0,
      record,
    });
  }

  /**
   * Notes whether polls wait for the request budget. Must be called when all polls that may be sent
   * have been sent. `since`: since when nothing else has delayed them.
   */
  noteWaiting(since: number, now: number): void {
    const { scheduler } = this.#deps;
    const dueAt = Math.max(scheduler.waitingSince(), since);
    if (now - dueAt < BUDGET_WAIT_MS) {
      if (now - dueAt < BUDGET_WAIT_MS / 2) this.delays.end(DelayCause.budgetExhausted, now);
      return;
    }
    const { requests, perMs, concurrency } = scheduler.limits.budget.settings;
    this.delays.begin(
      DelayCause.budgetExhausted,
      `more polls were due than the request budget allows: ${requests} in ${perMs / 1_000} s, ${concurrency} at once`,
      { beganAt: dueAt, endedAt: null },
    );
  }

  /**
   * Writes what the ledger does not have yet: changes of the circuit breaker, then pauses and steps
   * of the clock, because recording an outage clears the pause. Throws what the ledger throws.
   */
  write(now: number): void {
    const { scheduler, ledger, listener, upstream } = this.#deps;
    for (let change = this.#unwritten[0]; change; change = this.#unwritten[0]) {
      ledger.recordUpstream(change);
      this.#unwritten.shift();
      listener.upstream(change);
    }
    const { until } = scheduler.limits.pause;
    if (this.#clock.pauses(until, now)) {
      this.#isPauseUnwritten = true;
      this.delays.begin(DelayCause.paused, this.#reason, { beganAt: now, endedAt: until });
    }
    if (this.#isPauseUnwritten) {
      ledger.recordPause(upstream, this.#clock.record);
      this.#isPauseUnwritten = false;
    }
    this.delays.write((delays) => ledger.recordDelays(upstream, delays));
  }
}
