import type { Observation } from '../domain/classify.ts';
import { MAX_RETRY_AFTER_MS } from '../domain/retry-after.ts';
import { Status } from '../domain/submission.ts';
import type { TransitionContext } from '../domain/transition.ts';
import { BreakerState } from '../domain/upstream-health.ts';
import type { Pacer } from '../pacing/scheduler.ts';
import { OutageClock } from './outage-clock.ts';
import type { RecordedObservation, UpstreamChange, UpstreamRecord, WatcherLedger } from './ports.ts';
import { StoreEvidence } from './store-evidence.ts';

/** A pause that is longer than what is written by so much is written at once. */
const UNWRITTEN_PAUSE_MS = 10_000;
/** The least time between two polls that are to prove that the store works. */
const PROOF_INTERVAL_MS = 60_000;

/**
 * What the time limits of one upstream's submissions depend on: in which time it could be polled, and when "not found" is
 * believed. Of this, the ledger keeps outages and pauses; the rest begins anew with each process, because a process that has just
 * started has polled nothing.
 */
export class TimeLimits {
  readonly #upstream: string;
  readonly #pacer: Pacer;
  readonly #ledger: Pick<WatcherLedger, 'recordPause' | 'findShownId'>;
  readonly #outageClock = new OutageClock();
  readonly #evidence = new StoreEvidence();
  #pollableSince = Number.POSITIVE_INFINITY;
  #proofAskedAt = Number.NEGATIVE_INFINITY;
  #isPauseUnwritten = false;
  #writtenPauseUntil = Number.NEGATIVE_INFINITY;

  constructor(deps: { upstream: string; pacer: Pacer; ledger: Pick<WatcherLedger, 'recordPause' | 'findShownId'> }) {
    this.#upstream = deps.upstream;
    this.#pacer = deps.pacer;
    this.#ledger = deps.ledger;
  }

  /** Continues where an earlier process stopped, its pause included. */
  restore(record: UpstreamRecord, now: number): void {
    this.#outageClock.restore(record, now);
    this.#evidence.restore(this.#ledger.findShownId(this.#upstream));
    // A clock that was ahead left a time that is too late.
    if (record.pausedUntil !== null) this.#pacer.restorePause(Math.min(record.pausedUntil, now + MAX_RETRY_AFTER_MS));
  }

  outageMs(now: number): number {
    return this.#outageClock.totalMs(now);
  }

  /** Polls can be sent from now on. */
  begin(now: number): void {
    this.#pollableSince = now;
  }

  /** The clock was set forward by so much: in that time nothing was polled. */
  skip(skippedMs: number, now: number): void {
    this.#outageClock.skips(now - skippedMs, now);
    this.#isPauseUnwritten = true;
    this.begin(now);
  }

  /** Takes note of observations before they are recorded: what they say together decides what each of them is worth. */
  observe(observations: readonly Observation[]): void {
    for (const observation of observations)
      this.#evidence.observe(observation, this.#pacer.hasSeen(observation.submissionId));
  }

  /** `blockedUntil`: the ledger could not be written until then, so nothing was polled. */
  context(now: number, blockedUntil: number): Omit<TransitionContext, 'recheck'> {
    const { breaker, pausedUntil } = this.#pacer;
    return {
      now,
      outageMs: this.outageMs(now),
      upstreamUp: !breaker.isOpen,
      pollableSince: Math.max(this.#pollableSince, pausedUntil, blockedUntil),
      notFoundTrust: this.#evidence.trust(now),
    };
  }

  /** The circuit breaker opened or closed. Returns what the ledger keeps of it. */
  turn(state: BreakerState, now: number): UpstreamChange['record'] {
    if (state === BreakerState.closed) {
      this.#outageClock.outageEnds(now);
      this.#pollableSince = now;
    } else {
      this.#outageClock.outageBegins(this.#pacer.breaker.openedAt);
    }
    // Writing the outage removes a pause from the row of the upstream.
    this.#writtenPauseUntil = Number.NEGATIVE_INFINITY;
    return { state, outSince: this.#outageClock.outSince, outageMs: this.#outageClock.record.outageMs };
  }

  /**
   * Takes note of a pause. A long one is written at once, so that it outlives this process; short ones, of which there can be one
   * per second, with `write`. Throws what the ledger throws.
   */
  pause(now: number): void {
    const { pausedUntil } = this.#pacer;
    if (this.#outageClock.pauses(pausedUntil, now)) this.#isPauseUnwritten = true;
    if (pausedUntil - Math.max(now, this.#writtenPauseUntil) >= UNWRITTEN_PAUSE_MS) this.write();
  }

  /** Writes what the ledger does not have yet. Throws what the ledger throws. */
  write(): void {
    if (!this.#isPauseUnwritten) return;
    const { record } = this.#outageClock;
    this.#ledger.recordPause(this.#upstream, record);
    this.#isPauseUnwritten = false;
    this.#writtenPauseUntil = record.pausedUntil ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * A submission to poll now, because the upstream has shown it before: whether it still does tells what a recorded "not found" is
   * worth. Undefined: that is known, or nothing can tell.
   */
  proofWanted(recorded: readonly RecordedObservation[], now: number): string | undefined {
    if (!recorded.some(isDoubtful) || !this.#evidence.needsProof(now)) return undefined;
    const { shownId } = this.#evidence;
    if (shownId === undefined || this.#pacer.awaitsRecheck(shownId)) return undefined;
    if (now - this.#proofAskedAt < PROOF_INTERVAL_MS) return undefined;
    this.#proofAskedAt = now;
    return shownId;
  }
}

function isDoubtful({ observation, submission }: RecordedObservation): boolean {
  return observation.kind === 'not_found' && observation.ambiguous && submission.status === Status.tracking;
}
