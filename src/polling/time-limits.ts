import type { Observation } from '../submissions/classify.ts';
import type { RecordedObservation } from '../submissions/ports.ts';
import { Status } from '../submissions/submission.ts';
import {
  FULL_TRUST,
  type NotFoundTrust,
  type TransitionContext,
} from '../submissions/transition.ts';
import { isSeen } from '../submissions/upstream.ts';
import type { OutageJournal } from './outage-journal.ts';
import type { Scheduler } from './scheduler.ts';

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
/** Failing submissions that are remembered. */
const MAX_FAILING = 1_000;
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
  /** The first failure of submissions that fail. */
  readonly #failedAt = new Map<string, number>();

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
    if (isSeen(observation)) this.#shownId = submissionId;
    if (isSeen(observation) || (kind === 'not_found' && !observation.ambiguous)) {
      this.#failedAt.delete(submissionId);
      this.#prove(at);
      return;
    }
    const isMissing = kind === 'not_found' && (seenBefore || submissionId === this.#shownId);
    const isTrouble = isMissing || (kind === 'unavailable' && observation.reason !== 'refused');
    if (isTrouble && !this.#failsAlone(submissionId, at)) this.#doubt(at);
  }

  /**
   * Whether a submission fails again although the store has worked since its first failure: then
   * its failures have no meaning for the others.
   */
  #failsAlone(submissionId: string, at: number): boolean {
    const failedAt = this.#failedAt.get(submissionId);
    if (failedAt !== undefined) return failedAt < this.#lastProofAt;
    this.#failedAt.set(submissionId, at);
    for (const oldest of this.#failedAt.keys()) {
      if (this.#failedAt.size <= MAX_FAILING) break;
      this.#failedAt.delete(oldest);
    }
    return false;
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
    if (shownId === undefined) return;
    this.#evidence.restore(shownId);
    this.#scheduler.restoreReturned(shownId);
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
   * Since when the upstream can be polled without a break; in a pause a time in the future.
   * `blockedUntil`: when the ledger becomes writable after a failed write; nothing is polled
   * before.
   */
  pollableSince(blockedUntil: number): number {
    return Math.max(this.#pollableSince, this.#scheduler.limits.pause.until, blockedUntil);
  }

  context(now: number, blockedUntil: number): Omit<TransitionContext, 'recheck'> {
    const { breaker } = this.#scheduler.limits;
    return {
      now,
      outageMs: this.#journal.outageMs(now),
      upstreamUp: !breaker.isOpen,
      pollableSince: this.pollableSince(blockedUntil),
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
