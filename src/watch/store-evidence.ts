import type { Observation } from '../domain/classify.ts';
import { FULL_TRUST, type NotFoundTrust } from '../domain/transition.ts';
import { isSeen } from '../domain/upstream-health.ts';

/** For so long after a definite response the store is taken to work: longer than the intervals between two polls are by default. */
const PROOF_LASTS_MS = 6 * 60_000;
/** A definite response that is older than this is renewed when an ambiguous one arrives. */
const PROOF_RENEWED_MS = 60_000;
/** Trouble that a definite response ends within this time is a single failed request, as every upstream has them. */
const BLIP_MS = 60_000;
/** Time counts for so much where nothing can prove that the store works. */
const UNPROVABLE_SHARE = 1 / 4;

/**
 * Whether the store of one upstream answers properly. An upstream sends 500 "Record not found" for an id that it does not
 * have, and for every id while its database fails. What tells the two apart are definite responses, which only a store that
 * works can give: a submission in any state, or a 404 of its own.
 *
 *     proven      a definite response in the last six minutes, no trouble after it: "not found" counts in full
 *     disproven   trouble, or silence, although a submission is known that the upstream has shown: nothing counts
 *     unprovable  the upstream has never shown any submission: a quarter counts, from the last trouble on
 */
export class StoreEvidence {
  /** The newest definite response; -Infinity after trouble. */
  #provenAt = Number.NEGATIVE_INFINITY;
  #lastProofAt = Number.NEGATIVE_INFINITY;
  /** Since when it has been proven without a lapse. */
  #provenSince = Number.POSITIVE_INFINITY;
  #troubledAt = Number.NEGATIVE_INFINITY;
  #troubledSince: number | null = null;
  #shownId: string | undefined;

  /** A submission that the upstream has shown: a poll of it proves or disproves the store. */
  get shownId(): string | undefined {
    return this.#shownId;
  }

  /** What an earlier process saw. */
  restore(shownId: string | undefined): void {
    this.#shownId ??= shownId;
  }

  /** `seenBefore`: the upstream has shown this submission before. */
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

  /** Whether a poll of the shown submission is worth its request. */
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
