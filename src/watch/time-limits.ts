import type { Observation } from '../domain/classify.ts';
import { Status } from '../domain/submission.ts';
import type { TransitionContext } from '../domain/transition.ts';
import type { Scheduler } from '../pacing/scheduler.ts';
import type { OutageJournal } from './outage-journal.ts';
import type { RecordedObservation } from './ports.ts';
import { StoreEvidence } from './store-evidence.ts';

/** Minimum time between two proof polls. */
const PROOF_INTERVAL_MS = 60_000;

/**
 * What the time limits of one upstream's submissions depend on besides its outages: since when the upstream could be
 * polled without a break, and when "not found" is trusted. Both are reset in each process, because a process that has
 * just started has polled nothing.
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

  /** Adds observations before any of them is recorded: together they decide whether "not found" is trusted. */
  observe(observations: readonly Observation[]): void {
    for (const observation of observations)
      this.#evidence.observe(observation, this.#scheduler.find(observation.submissionId)?.seen ?? false);
  }

  /** `blockedUntil`: when the ledger becomes writable after a failed write; nothing is polled before. */
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
   * Returns the id of a submission to poll now because the upstream has returned it before: whether the upstream still
   * does shows if the recorded "not found" can be trusted. Undefined if that is known already or cannot be tested.
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
  return observation.kind === 'not_found' && observation.ambiguous && submission.status === Status.tracking;
}
