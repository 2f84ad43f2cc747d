import { backoffMs, ceilingMs, type PacingSettings } from './backoff.ts';
import { BlockGate } from './block-gate.ts';
import type { Observation } from './classify.ts';
import { CohortSweep } from './cohort-sweep.ts';
import { Doubt } from './doubt.ts';
import { FinalityClock, type Window } from './finality-clock.ts';
import { type Learned, readLearned, writeLearned } from './learned.ts';
import {
  type Candidate,
  NEVER,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
  type PolicyReason,
} from './policy.ts';
import { WaitingLine } from './waiting-line.ts';

/** How exactly the moment of finality is to be known: a window that is wider is searched with several questions. */
const EXACT_MS = 500;
const MOST_PROBES = 4;
/** So many answers decide whether the order of tracking is that of finality. */
const DISORDER_MEMORY = 50;

export function cohortPacing(settings: PacingSettings): PolicyFactory {
  return (deps) => new CohortPacing(settings, deps);
}

/**
 * Submissions become final in groups, on the clock of the blocks, nearly in the order in which they were made. So only
 * few are asked about, and at the right moments:
 *
 *     scouts   the first in line, when the next block becomes final, once they are old enough
 *     sweep    when one is final, its neighbours at once, as many as groups have
 *     strays   those that were overtaken or failed, at later blocks, at growing distance
 *     net      everybody else, just after the last block before they reach the ceiling
 *
 * While the clock is not known, and whenever the order turns out to be none, each is asked by its age instead.
 */
class CohortPacing implements PacingPolicy {
  readonly #settings: PacingSettings;
  readonly #move: (item: Candidate, dueAt: number) => void;
  readonly #random: () => number;
  #clock = new FinalityClock();
  #sweep = new CohortSweep();
  #gate = new BlockGate();
  readonly #line = new WaitingLine();
  /** The last in line that the newest block made final: whoever stands before it and is still open was overtaken. */
  #front = 0;
  /** How often somebody in line is overtaken rather than final in turn: 0 never, 1 always. */
  #disorder = 0;
  readonly #doubt: Doubt;
  /** What was heard before this is known only roughly: the last answer that a process before this one had may have been none. */
  #resumedAt = NEVER;

  constructor(settings: PacingSettings, deps: Parameters<PolicyFactory>[0]) {
    this.#settings = settings;
    this.#move = deps.move;
    this.#random = deps.random;
    this.#doubt = new Doubt(deps.random);
  }

  enrol(item: Candidate, { polledAt }: { polledAt: number | null }, now: number): number {
    this.#line.append(item);
    if (polledAt !== null) {
      item.openAt = polledAt;
      this.#resumedAt = now;
    }
    return this.#askAt(item, polledAt ?? item.trackedAt, now);
  }

  learn(item: Candidate, observation: Observation, now: number): number {
    // A clock that was set back would make everything unknown until it has caught up.
    this.#resumedAt = Math.min(this.#resumedAt, now);
    const isDoubter = this.#doubt.settle(item);
    switch (observation.kind) {
      case 'finalized':
        this.#final(item, { block: observation.blockNumber, at: observation.at, isDoubter }, now);
        return now;
      case 'error':
        // The upstream sends it again, behind the others.
        this.#open(item, observation);
        this.#stray(item);
        break;
      case 'pending':
      case 'not_found':
        this.#open(item, observation);
        if (item.order > 0 && item.order < this.#front && item.openAt >= this.#sweep.by) {
          this.#disorder += (1 - this.#disorder) / DISORDER_MEMORY;
          this.#stray(item);
        }
        break;
      case 'rejected':
      case 'unauthorized':
      case 'throttled':
      case 'unavailable':
        return now + backoffMs(this.#settings, now - item.trackedAt, this.#random);
      default:
        return observation satisfies never;
    }
    this.#seatScouts(item, now);
    return this.#askAt(item, now, now);
  }

  leave(item: Candidate, now: number): void {
    this.#doubt.settle(item);
    if (item.order === 0) return;
    this.#unline(item);
    this.#seatScouts(item, now);
  }

  learned(): string {
    const { ticks, enough } = this.#clock;
    return writeLearned({ ticks, enough, groups: this.#sweep.groups, disorder: this.#disorder });
  }

  recall(text: string): void {
    const learned: Learned | undefined = readLearned(text);
    if (!learned) return;
    this.#clock = new FinalityClock(learned.ticks, learned.enough);
    const newest = this.#clock.ticks.at(-1);
    this.#gate = new BlockGate(newest ? { block: newest.block, at: newest.by } : null);
    this.#sweep = new CohortSweep(learned.groups);
    this.#disorder = learned.disorder;
  }

  finalAfter(block: number): number | null {
    return this.#clock.finalAfter(block);
  }

  describe(now: number): PacingDescription {
    return {
      periodMs: this.#clock.periodMs,
      next: this.#clock.windowAfter(now),
      leastAgeMs: this.#sweep.leastAgeMs,
      groupSize: this.#sweep.groups.meanSize,
      inLine: this.#line.size,
      scouts: Math.min(this.#scouts, this.#line.size),
      disorder: this.#disorder,
      mode: this.#clock.windowAfter(now) === null ? 'by_age' : this.#isOrderly ? 'cohorts' : 'clock_only',
    };
  }

  why(item: Candidate, now: number): PolicyReason {
    if (item.order > 0 && this.#sweep.hasReached(item)) return 'sweep';
    // Nobody is asked so young for another reason.
    if (item.dueAt < this.#ripeAt(item)) return 'net';
    if (!this.#clock.windowAfter(now)) return 'age';
    if (this.#doubt.isAbout(item)) return 'doubt';
    if (item.order === 0 || !this.#isOrderly) return 'alone';
    return this.#seatOf(item) < this.#scouts ? 'scout' : 'net';
  }

  #open(item: Candidate, { at, durationMs }: Observation): void {
    item.openAt = Math.max(item.openAt, at - durationMs);
  }

  #final(item: Candidate, found: { block: number | null; at: number; isDoubter: boolean }, now: number): void {
    const { at } = found;
    const block = this.#believed(found.block, at);
    if (block === null) {
      this.#sweep.foundAlone(this.#ageAt(item, null, at));
      return;
    }
    if (found.isDoubter) this.#clock.doubt(block, at);
    this.#clock.learn({ block, after: this.#isKnown(item) ? item.openAt : NEVER, by: at });
    if (block > this.#sweep.block) {
      this.#front = 0;
      this.#doubt.draw();
    }
    if (item.order === 0) {
      this.#sweep.begin(block, at, null, this.#line.head);
    } else {
      this.#disorder -= this.#disorder / DISORDER_MEMORY;
      this.#sweep.begin(block, at, item.before, item.after);
      this.#sweep.found(block, this.#ageAt(item, this.#clock.finalBy(block), at));
      if (block >= this.#sweep.block) this.#front = Math.max(this.#front, item.order);
      this.leave(item, now);
    }
    // The oldest first, where the budget is short.
    let place = 0;
    for (let next = this.#sweep.next(); next; next = this.#sweep.next()) this.#sooner(next, now - 1 / ++place);
  }

  /** Null for a block that is not where the chain must be. Where the chain is another one, everything begins anew. */
  #believed(block: number | null, at: number): number | null {
    if (block === null) return null;
    const verdict = this.#gate.judge(block, at, this.#clock.periodMs);
    if (verdict === 'odd') return null;
    if (verdict === 'changed') {
      this.#clock = new FinalityClock();
      this.#sweep = new CohortSweep();
      this.#disorder = 0;
      this.#front = 0;
    }
    return block;
  }

  /** How old it was when it became final; null where it may have been final before it was tracked. */
  #ageAt(item: Candidate, finalAt: number | null, seenAt: number): number | null {
    if (finalAt !== null) return finalAt <= item.trackedAt ? null : Math.min(finalAt, seenAt) - item.trackedAt;
    const isAskedAtOnce = item.openAt === NEVER && this.#sweep.leastAgeMs === 0;
    return isAskedAtOnce || !this.#isKnown(item) ? null : seenAt - item.trackedAt;
  }

  /** Whether all that is noted of it was heard by this process. */
  #isKnown(item: Candidate): boolean {
    return item.openAt >= this.#resumedAt || item.trackedAt >= this.#resumedAt;
  }

  #stray(item: Candidate): void {
    if (item.order > 0) this.#unline(item);
  }

  #unline(item: Candidate): void {
    this.#sweep.step(item);
    this.#line.remove(item);
  }

  /** Whoever has come to the head of the line is not left to the net. */
  #seatScouts(inHand: Candidate, now: number): void {
    if (!this.#isOrderly) return;
    let item = this.#line.head;
    for (let seat = 0; seat < this.#scouts && item; seat++, item = item.after)
      if (item !== inHand) this.#sooner(item, this.#scoutAt(item, seat, now));
  }

  #sooner(item: Candidate, dueAt: number): void {
    if (dueAt < item.dueAt - 1) this.#move(item, dueAt);
  }

  /** `askedAt`: when it was asked about, or else tracked. */
  #askAt(item: Candidate, askedAt: number, now: number): number {
    const latestAt = askedAt + ceilingMs(this.#settings, now - item.trackedAt);
    return Math.max(now, Math.min(latestAt, this.#netAt(latestAt, now), this.#ownAt(item, now)));
  }

  /** Infinity: others are asked in its place. */
  #ownAt(item: Candidate, now: number): number {
    if (!this.#clock.windowAfter(now)) return this.#backoffAt(item, now);
    if (item.order === 0 || !this.#isOrderly) return this.#tickAt(item, now);
    const seat = this.#seatOf(item);
    return seat < this.#scouts ? this.#scoutAt(item, seat, now) : Number.POSITIVE_INFINITY;
  }

  /** The clock is not known. */
  #backoffAt(item: Candidate, now: number): number {
    const ripeAt = this.#ripeAt(item);
    if (item.openAt < item.trackedAt) return Math.max(now, ripeAt);
    if (item === this.#line.head) return this.#scoutAt(item, 0, now);
    // Where there are groups, the head of the line finds it for all.
    const fromAt = this.#sweep.areGroups ? item.trackedAt : ripeAt;
    return Math.max(item.openAt + backoffMs(this.#settings, item.openAt - fromAt, this.#random), ripeAt);
  }

  /** One that goes its own way becomes final on the clock too: at the next tick, and later at every few of them. */
  #tickAt(item: Candidate, now: number): number {
    const ripeAt = this.#ripeAt(item);
    const gapMs = Math.min(
      Math.max(0, now - ripeAt) / 8,
      backoffMs(this.#settings, now - item.trackedAt, () => 0.5),
    );
    const window = this.#clock.windowAfter(Math.max(now, now + gapMs, ripeAt));
    return window ? (this.#doubtAt(item, window, now) ?? window.until) : this.#backoffAt(item, now);
  }

  #scoutAt(item: Candidate, seat: number, now: number): number {
    const periodMs = this.#clock.periodMs ?? 0;
    const groupAt = (this.#clock.finalBy(this.#sweep.nextBlock) ?? now) - periodMs / 2;
    const window = this.#clock.windowAfter(Math.max(now, this.#ripeAt(item), groupAt));
    if (!window) return this.#lookoutAt(item, seat, now);
    if (seat === 0) return this.#doubtAt(item, window, now) ?? probesOf(window).find((at) => at > now) ?? window.until;
    // The first one answers for the others, if it does so soon.
    return window.until + Math.min(1_000, periodMs / 16);
  }

  #doubtAt(item: Candidate, window: Window, now: number): number | null {
    const bounds = { earliestAt: this.#ripeAt(item), now };
    return this.#doubt.askAt(item, window, this.#clock.periodMs ?? 0, bounds);
  }

  /** The clock is not known: where there are groups, one that asks often finds it for all. */
  #lookoutAt(item: Candidate, seat: number, now: number): number {
    const ripeAt = this.#ripeAt(item);
    const delayMs = backoffMs(this.#settings, now - ripeAt, () => 0.5);
    const oftenMs = seat === 0 && this.#sweep.areGroups ? 2 * this.#settings.minIntervalMs : delayMs;
    return Math.max(now + Math.min(delayMs, oftenMs), ripeAt);
  }

  /** The net comes a little after a tick: by then the sweep has found whom it can. */
  #netAt(latestAt: number, now: number): number {
    const slackMs = (this.#clock.periodMs ?? 0) / 8;
    const window = this.#clock.windowAfter(latestAt - 9 * slackMs);
    const at = window ? window.until + slackMs : latestAt;
    return at > now && at <= latestAt ? at : latestAt;
  }

  #ripeAt(item: Candidate): number {
    return item.trackedAt + this.#sweep.leastAgeMs;
  }

  #seatOf(item: Candidate): number {
    let seat = 0;
    for (let other = item.before; other && seat < this.#scouts; other = other.before) seat++;
    return seat;
  }

  /** More where stragglers are: one of them alone at the head would hide that a block is final. */
  get #scouts(): number {
    return this.#disorder < 0.05 ? 2 : 5;
  }

  get #isOrderly(): boolean {
    return this.#disorder < 0.3;
  }
}

/** The moments at which to look whether a block is final: one at its end, or several if that would be late. */
function probesOf({ from, until }: Window): number[] {
  const probes = Math.min(MOST_PROBES, Math.max(1, Math.ceil((until - from) / EXACT_MS)));
  return Array.from({ length: probes }, (_, index) => from + ((until - from) * (index + 1)) / probes);
}
