import type { Observation } from '../domain/classify.ts';
import { FULL_TRUST, type NotFoundTrust } from '../domain/transition.ts';
import { isSeen } from '../domain/upstream-health.ts';

/** How long a definite response proves that the store works: longer than the default interval between two polls. */
const PROOF_LASTS_MS = 6 * 60_000;
/** Age of a definite response from which an ambiguous one triggers a proof poll. */
const PROOF_RENEWED_MS = 60_000;
/** Trouble that a definite response ends within this time counts as one failed request, which is normal. */
const BLIP_MS = 60_000;
/** The share of time that counts where nothing can prove that the store works. */
const UNPROVABLE_SHARE = 1 / 4;

/**
 * Evidence of whether the store of one upstream works. An upstream sends 500 "Record not found" both for an id that it does
 * not have and, while its database fails, for every id. Only a working store sends a definite response: a submission in any
 * state, or a 404.
 *
 *     proven      a definite response within the last six minutes, no trouble after it: "not found" counts in full
 *     disproven   trouble or silence, although the upstream has returned a submission before: nothing counts
 *     unprovable  the upstream has never returned a submission: a quarter of the time counts, starting at the last trouble
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
