import { MAX_RETRY_AFTER_MS } from '../lib/retry-after.ts';
import type { Observation } from '../submissions/classify.ts';
import { UpstreamEventType } from '../submissions/event-types.ts';
import type { RecordedObservation } from '../submissions/ports.ts';
import { Status } from '../submissions/submission.ts';
import {
  FULL_TRUST,
  type NotFoundTrust,
  type TransitionContext,
} from '../submissions/transition.ts';
import {
  BreakerState,
  isSeen,
  type PauseRecord,
  type UpstreamChange,
  type UpstreamRecord,
} from '../submissions/upstream.ts';
import type { WatcherListener } from './listeners.ts';
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

type OutageJournalDeps = {
  upstream: string;
  scheduler: Scheduler;
  ledger: {
    recordUpstream(change: UpstreamChange): void;
    recordPause(upstream: string, pause: PauseRecord): void;
  };
  listener: Required<WatcherListener>;
};

/**
 * Keeps the outages and pauses of one upstream in the ledger, so that time limits exclude them
 * after a restart too. A change that the ledger rejects stays in the journal and is written by a
 * later `write`.
 */
export class OutageJournal {
  readonly #deps: OutageJournalDeps;
  readonly #clock = new OutageClock();
  /** Changes of the circuit breaker that are not in the ledger yet. */
  readonly #unwritten: UpstreamChange[] = [];
  #isPauseUnwritten = false;

  constructor(deps: OutageJournalDeps) {
    this.#deps = deps;
  }

  /** Continues the outage and the pause that an earlier process recorded. */
  restore(record: UpstreamRecord, now: number): void {
    const { scheduler } = this.#deps;
    const { breaker } = scheduler.limits;
    this.#clock.restore(record, now);
    if (record.outSince !== null)
      breaker.restore(record.state, Math.min(record.outSince, now), now);
    // A process whose clock was ahead may have recorded a pause that ends too late.
    if (record.pausedUntil !== null)
      scheduler.limits.pause.restore(Math.min(record.pausedUntil, now + MAX_RETRY_AFTER_MS));
  }

  /** Total duration of all outages and pauses until `now`. Every time limit moves by it. */
  outageMs(now: number): number {
    return this.#clock.totalMs(now);
  }

  /** Adds a step of the clock, during which nothing was polled. */
  skip(skippedMs: number, now: number): void {
    this.#clock.skips(now - skippedMs, now);
    this.#isPauseUnwritten = true;
  }

  /** Adds a change of the circuit breaker, to be written by `write`. */
  breakerChanged(state: BreakerState, now: number): void {
    const { scheduler, upstream } = this.#deps;
    if (state === BreakerState.up) this.#clock.outageEnds(now);
    else this.#clock.outageBegins(scheduler.limits.breaker.openedAt);
    const record = { state, outSince: this.#clock.outSince, outageMs: this.#clock.record.outageMs };
    this.#unwritten.push({ upstream, at: now, event: EVENT_OF[state], record });
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
    if (this.#clock.pauses(scheduler.limits.pause.until, now)) this.#isPauseUnwritten = true;
    if (!this.#isPauseUnwritten) return;
    ledger.recordPause(upstream, this.#clock.record);
    this.#isPauseUnwritten = false;
  }
}

/**
 * How long a definite response proves that the store works: longer than the default interval
 * between two polls.
 */
const PROOF_LASTS_MS = 6 * 60_000;
/** Age of a definite response from which an ambiguous one triggers a proof poll. */
const PROOF_RENEWED_MS = 60_000;
/**
 * Trouble that a definite response ends within this time counts as one failed request, which is
 * normal.
 */
const BLIP_MS = 60_000;
/** The share of time that counts where nothing can prove that the store works. */
const UNPROVABLE_SHARE = 1 / 4;

/**
 * Evidence of whether the store of one upstream works. An upstream sends 500 "Record not found"
 * both for an id that it does not have and, while its database fails, for every id. Only a working
 * store sends a definite response: a submission in any state, or a 404.
 *
 *     proven      a definite response within the last six minutes, no trouble after it: "not found"
 *                 counts in full
 *     disproven   trouble or silence, although the upstream has returned a submission before:
 *                 nothing counts
 *     unprovable  the upstream has never returned a submission: a quarter of the time counts,
 *                 starting at the last trouble
 */
export class StoreEvidence {
  /** The newest definite response; -Infinity after trouble. */
  #provenAt = Number.NEGATIVE_INFINITY;
  #lastProofAt = Number.NEGATIVE_INFINITY;
  /** Start of the current period without a lapse of the proof. */
  #provenSince = Number.POSITIVE_INFINITY;
  #troubledAt = Number.NEGATIVE_INFINITY;
  #troubledSince: number | null = null;
  #shownId: string | undefined;

  /** A submission that the upstream has returned: a poll of it proves or disproves the store. */
  get shownId(): string | undefined {
    return this.#shownId;
  }

  /** Continues with a submission that an earlier process has seen. */
  restore(shownId: string | undefined): void {
    this.#shownId ??= shownId;
  }

  /** `seenBefore`: the upstream has returned this submission before. */
  observe(observation: Observation, seenBefore: boolean): void {
    const { kind, at, submissionId } = observation;
    if (isSeen(observation)) {
      this.#shownId = submissionId;
      this.#prove(at);
    } else if (kind === 'not_found') {
      if (!observation.ambiguous) this.#prove(at);
      else if (seenBefore || submissionId === this.#shownId) this.#doubt(at);
    } else if (kind === 'unavailable' && observation.reason !== 'refused') {
      this.#doubt(at);
    }
  }

  /** Returns whether a proof poll is worth its request. */
  needsProof(now: number): boolean {
    return this.#provenAt < now - PROOF_RENEWED_MS;
  }

  trust(now: number): NotFoundTrust {
    const until = this.#provenAt + PROOF_LASTS_MS;
    if (this.#shownId === undefined && until < now)
      return { ...FULL_TRUST, since: this.#troubledAt, share: UNPROVABLE_SHARE };
    return { since: this.#provenSince, until, share: 1 };
  }

  #prove(at: number): void {
    const lapsed = at - this.#lastProofAt > PROOF_LASTS_MS;
    const troubled = this.#troubledSince !== null && at - this.#troubledSince > BLIP_MS;
    if (lapsed || troubled) this.#provenSince = at;
    this.#provenAt = Math.max(this.#provenAt, at);
    this.#lastProofAt = Math.max(this.#lastProofAt, at);
    this.#troubledSince = null;
  }

  #doubt(at: number): void {
    this.#provenAt = Number.NEGATIVE_INFINITY;
    this.#troubledAt = Math.max(this.#troubledAt, at);
    this.#troubledSince ??= at;
  }
}

/** Minimum time between two proof polls. */
const PROOF_INTERVAL_MS = 60_000;

/**
 * What the time limits of one upstream's submissions depend on besides its outages: since when the
 * upstream could be polled without a break, and when "not found" is trusted. Both are reset in each
 * process, because a process that has just started has polled nothing.
 */
export class TimeLimits {
  readonly #scheduler: Scheduler;
  readonly #journal: OutageJournal;
  readonly #evidence = new StoreEvidence();
  #pollableSince = Number.POSITIVE_INFINITY;
  #proofPolledAt = Number.NEGATIVE_INFINITY;

  constructor(deps: { scheduler: Scheduler; journal: OutageJournal }) {
    this.#scheduler = deps.scheduler;
    this.#journal = deps.journal;
  }

  /** `shownId`: a submission that the upstream has returned to an earlier process. */
  restore(shownId: string | undefined): void {
    this.#evidence.restore(shownId);
  }

  /** Polls can be sent from now on, after a start, an outage or a step of the clock. */
  begin(now: number): void {
    this.#pollableSince = now;
  }

  /**
   * Adds observations before any of them is recorded: together they decide whether "not found" is
   * trusted.
   */
  observe(observations: readonly Observation[]): void {
    for (const observation of observations)
      this.#evidence.observe(
        observation,
        this.#scheduler.find(observation.submissionId)?.seen ?? false,
      );
  }

  /**
   * `blockedUntil`: when the ledger becomes writable after a failed write; nothing is polled
   * before.
   */
  context(now: number, blockedUntil: number): Omit<TransitionContext, 'recheck'> {
    const { breaker, pause } = this.#scheduler.limits;
    return {
      now,
      outageMs: this.#journal.outageMs(now),
      upstreamUp: !breaker.isOpen,
      pollableSince: Math.max(this.#pollableSince, pause.until, blockedUntil),
      notFoundTrust: this.#evidence.trust(now),
    };
  }

  /**
   * Returns the id of a submission to poll now because the upstream has returned it before: whether
   * the upstream still does shows if the recorded "not found" can be trusted. Undefined if that is
   * known already or cannot be tested.
   */
  neededProof(recorded: readonly RecordedObservation[], now: number): string | undefined {
    if (!recorded.some(isUncertain) || !this.#evidence.needsProof(now)) return undefined;
    const { shownId } = this.#evidence;
    if (shownId === undefined || this.#scheduler.awaitsRecheck(shownId)) return undefined;
    if (now - this.#proofPolledAt < PROOF_INTERVAL_MS) return undefined;
    this.#proofPolledAt = now;
    return shownId;
  }
}

function isUncertain({ observation, submission }: RecordedObservation): boolean {
  return (
    observation.kind === 'not_found' &&
    observation.ambiguous &&
    submission.status === Status.tracking
  );
}
