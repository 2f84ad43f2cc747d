import { isWeights } from './age-distribution.ts';
import { BLOCK_COUNTS } from './blocks-to-wait.ts';
import { HeadPacing, type HeadPacingState, type HeadStatus } from './head-policy.ts';
import {
  describeCurve,
  type LearnedPacingSettings,
  learnedPacing,
  MAX_RESCHEDULED,
} from './policy.ts';
import type {
  Candidate,
  FinalizedHead,
  PacingDescription,
  PacingPolicy,
  PolicyFactory,
  PolicyReason,
  PollResult,
} from './port.ts';
import { DELAY_CELLS } from './row-delay.ts';

/** Time by which a block may be final before the node announces it. */
const ANNOUNCED_MS = 500;

/**
 * Returns a policy that polls by finalized heads while a node announces them, else exactly as
 * `learnedPacing`. Both learn from every poll.
 */
export function chainPacing(settings: LearnedPacingSettings): PolicyFactory {
  return (deps) => new ChainPacing(settings, deps);
}

class ChainPacing implements PacingPolicy {
  readonly #learned: PacingPolicy;
  readonly #heads: HeadPacing;
  readonly #reschedule: (item: Candidate, dueAt: number) => void;
  readonly #lagPrice: number;
  #status: HeadStatus = 'useless';
  #silentPollAt = Number.NEGATIVE_INFINITY;

  constructor(
    settings: LearnedPacingSettings,
    { reschedule, random }: Parameters<PolicyFactory>[0],
  ) {
    this.#lagPrice = settings.lagPrice;
    this.#reschedule = reschedule;
    this.#learned = learnedPacing(settings)({
      reschedule: (item, dueAt) => {
        if (!this.#isByHeads(item)) reschedule(item, dueAt);
      },
      random,
    });
    this.#heads = new HeadPacing(settings.lagPrice, (item, dueAt) => {
      if (this.#status === 'arriving') reschedule(item, dueAt);
    });
  }

  register(item: Candidate, known: { polledAt: number | null }, now: number): number {
    const learnedAt = this.#learned.register(item, known, now);
    this.#heads.register(item, known, now);
    this.#choose(item, now);
    return this.#isByHeads(item) ? this.#heads.dueAt(item, now) : learnedAt;
  }

  lagOf(
    item: Candidate,
    result: { blockNumber: number | null; at: number },
    now: number,
  ): number | null {
    this.#choose(item, now);
    return this.#isByHeads(item)
      ? this.#heads.lagOf(item, result)
      : this.#learned.lagOf(item, result, now);
  }

  learn(item: Candidate, result: PollResult, now: number): number {
    this.#choose(item, now);
    // What the head says about the time before is evidence for the other policy, too.
    if (this.#isByHeads(item) && this.#heads.isTimely && result.kind === 'finalized') {
      const openAt = this.#heads.openUntil(result.blockNumber) - ANNOUNCED_MS;
      item.openAt = Math.max(item.openAt, Math.min(openAt, result.at - result.durationMs));
    }
    const learnedAt = this.#learned.learn(item, result, now);
    this.#heads.learn(item, result, now);
    this.#choose(item, now);
    const isEvidence = ['finalized', 'pending', 'not_found', 'error'].includes(result.kind);
    return isEvidence && this.#isByHeads(item) ? this.#heads.dueAt(item, now) : learnedAt;
  }

  observeHead(head: FinalizedHead, now: number): void {
    this.#heads.observeHead(head, now);
    this.#choose(null, now);
  }

  confirm(item: Candidate, now: number): number {
    this.#choose(item, now);
    if (this.#isByHeads(item)) return this.#heads.confirm(item, now);
    const dueAt = this.#learned.confirm(item, now);
    if (this.#status !== 'silent' || dueAt > now || this.#learned.reasonOf(item, now) === 'net')
      return dueAt;
    // Probably finality has stalled. One poll now and then finds out if it has not.
    const heldUntil = this.#silentPollAt + this.#heads.silentPollMs;
    if (now < heldUntil) return heldUntil;
    this.#silentPollAt = now;
    return dueAt;
  }

  gain(item: Candidate, now: number): number {
    return this.#isByHeads(item) ? this.#heads.gain(item, now) : this.#learned.gain(item, now);
  }

  unregister(item: Candidate, now: number): void {
    this.#learned.unregister(item, now);
    this.#heads.unregister(item, now);
  }

  snapshot(): string | null {
    const learned = this.#learned.snapshot();
    const heads = this.#heads.state;
    return heads ? writeState(learned, heads) : learned;
  }

  restore(text: string): void {
    const state = readState(text);
    if (!state) {
      this.#learned.restore(text);
      return;
    }
    if (state.learned !== null) this.#learned.restore(state.learned);
    this.#heads.restore(state.heads);
  }

  describe(now: number): PacingDescription {
    this.#choose(null, now);
    const learned = this.#learned.describe(now);
    if (this.#status !== 'arriving') return learned;
    return {
      ...learned,
      mode: 'heads',
      slot: this.#heads.describeSlot(now),
      senders: this.#heads.senders,
      ...describeCurve(this.#heads.curve(now), this.#lagPrice),
    };
  }

  reasonOf(item: Candidate, now: number): PolicyReason {
    return this.#isByHeads(item)
      ? this.#heads.reasonOf(item, now)
      : this.#learned.reasonOf(item, now);
  }

  #isByHeads(item: Candidate): boolean {
    return this.#status === 'arriving' && this.#heads.follows(item);
  }

  /**
   * Chooses the policy. After a change, reschedules all but the current one, which is in no queue.
   */
  #choose(current: Candidate | null, now: number): void {
    const status = this.#heads.status(now);
    if (status === this.#status) return;
    this.#status = status;
    let moved = 0;
    for (const item of this.#heads.followed) {
      if (moved++ === MAX_RESCHEDULED) return;
      if (item === current) continue;
      const dueAt =
        status === 'arriving' ? this.#heads.dueAt(item, now) : this.#learned.confirm(item, now);
      this.#reschedule(item, dueAt);
    }
  }
}

const VERSION = 1;

type StoredState = { headsVersion: number; learned: string | null; heads: HeadPacingState };

function writeState(learned: string | null, heads: HeadPacingState): string {
  const state = { headsVersion: VERSION, learned, heads };
  return JSON.stringify(state, (_key, value) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value,
  );
}

/** Returns undefined for text that `writeState` did not write. */
function readState(text: string): StoredState | undefined {
  try {
    const state: StoredState = JSON.parse(text);
    return state.headsVersion === VERSION && isValid(state.heads) ? state : undefined;
  } catch {
    return undefined;
  }
}

function isValid({ slotMs, counts, delays, senders }: HeadPacingState): boolean {
  return (
    (slotMs === null || slotMs > 0) &&
    isWeights(counts, BLOCK_COUNTS) &&
    isWeights(delays, DELAY_CELLS) &&
    (senders === null || (Number.isSafeInteger(senders) && senders >= 1 && senders <= 1_000))
  );
}
