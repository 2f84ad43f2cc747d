import { FinalityGroups } from '../finality-groups.ts';
import { type Candidate, NEVER } from '../policy.ts';
import type { Cohort } from '../waiting-line.ts';
import { AgeDistribution } from './age-distribution.ts';
import { type LearnedState, readState, writeState } from './learned-state.ts';
import { SenderQueue } from './sender-queue.ts';
import { SlotClock } from './slot-clock.ts';
import { SlotModel } from './slot-model.ts';

/**
 * Who waits for the next slot waits for half of its period in the mean, whatever the finality gap. Where half of the
 * submissions take less than this share of a period, they do not wait for it.
 */
const LEAST_AGE = 0.25;
/** While no slots are known, a submission stands in line for so long: then its order says nothing any more. */
const MAX_QUEUED_MS = 6 * 3_600_000;
/** Finals remembered, to begin with where a clock becomes known, and how much each counts then, twice. */
const RECENT = { finals: 100, weight: 0.5, rounds: 2 };
/** Finals that count for less teach nothing new. */
const LEAST_WEIGHT = 0.02;
/** Without block numbers, finals within this share of a slot, or so long, are of one group. */
const TOGETHER = { slots: 1 / 3, ms: 2_000 };
/** What the first poll finds final so soon was final when it was tracked, as far as anybody can tell. */
const ALREADY_FINAL_MS = 1_000;
const LONGEST_LAG_MS = 60_000;

/** One that became final in the slot of `foundAt`; not `isExact`: or in an earlier one, after `openAt`. */
type Final = { order: number; queuedAt: number; openAt: number; foundAt: number; isExact: boolean };

/**
 * All that is known of the finality time of an upstream's submissions: its slots, where a clock is known, and the distribution
 * of age. Times are epoch milliseconds.
 */
export class FinalityModel {
  readonly #price: number;
  readonly #groups = new FinalityGroups();
  readonly #recent: Final[] = [];
  #clock = new SlotClock();
  ages: AgeDistribution;
  /** Null: no clock is known. */
  slots: SlotModel | null = null;
  queue = new SenderQueue();

  constructor(price: number) {
    this.#price = price;
    this.ages = new AgeDistribution(price);
  }

  get snapshot(): string {
    const { state, events } = this.#clock;
    const clock = state && { ...state, events: events.map(({ after, by }) => ({ after, by })) };
    const slots = this.slots?.state ?? null;
    return writeState({ version: 4, ages: this.ages.state, clock, slots, senders: this.queue.senders });
  }

  restore(text: string): void {
    const state: LearnedState | undefined = readState(text);
    if (!state) return;
    this.ages = new AgeDistribution(this.#price, state.ages);
    this.#clock = new SlotClock(state.clock, state.clock?.events);
    this.slots = state.clock && state.slots && new SlotModel(this.#clock, state.slots);
    this.queue = new SenderQueue(state.senders);
  }

  /** Slots pass. Returns whether another one has begun. */
  advance(now: number): boolean {
    if (!this.slots?.advance(now)) return false;
    this.queue.expire(this.slots.oldestSlot, now);
    return true;
  }

  /** A poll sent at `sentAt` found it open; `hasFailed`: the upstream sends it again. */
  observeOpen(item: Candidate, sentAt: number, hasFailed: boolean, now: number): void {
    const cohort = this.queue.line.cohortOf(item);
    if (cohort) {
      cohort.openAt = Math.max(cohort.openAt, sentAt);
      // A submission in Error is not on its way to a block: it is no evidence about the slot.
      if (!hasFailed) this.slots?.observeOpen({ start: cohort, openAt: item.openAt }, sentAt);
    }
    item.openAt = Math.max(item.openAt, sentAt);
    // One that waits to be sent again has been given up already.
    if (hasFailed && (cohort || !this.slots)) this.queue.requeue(item, sentAt);
    // One that never becomes final must not keep the places of all that came behind it.
    else if (!this.slots && now - this.queue.queuedAt(item) > MAX_QUEUED_MS) this.queue.remove(item, now);
  }

  /**
   * It was found final at `at`. Returns how long it had been so, as far as can be told; `isNews`: the event of the slot has
   * come; `isOther`: those that wait are to begin anew, by another clock or number of senders.
   */
  observeFinal(
    item: Candidate,
    block: number | null,
    at: number,
  ): { lagMs: number; isNews: boolean; isOther: boolean } {
    const { queue, slots } = this;
    const cohort = queue.line.cohortOf(item);
    const queuedAt = queue.queuedAt(item);
    const event = { after: Math.max(item.openAt, queuedAt), by: at };
    const known = this.#groups.find(block, event, slots ? slots.periodMs * TOGETHER.slots : TOGETHER.ms);
    if (known) this.#groups.addMember(known, event);
    const group = known ?? this.#groups.begin(block, { after: Math.max(event.after, cohort?.openAt ?? NEVER), by: at });
    const lagMs = known && slots ? at - known.foundAt : this.#lagMs(item, cohort, event.after, at);
    const isNews =
      slots !== null &&
      cohort !== null &&
      slots.observeFinal({ start: cohort, openAt: item.openAt }, group.foundAt, at);

    const final = { order: item.order, queuedAt, openAt: item.openAt, foundAt: group.foundAt, isExact: known !== null };
    this.#recent.push(final);
    this.#recent.splice(0, this.#recent.length - RECENT.finals);
    // A group says no more with thousands.
    const weight = 2 / (1 + group.members);
    let isOther = false;
    if (weight > LEAST_WEIGHT) {
      const isAlreadyFinal = item.openAt === NEVER && at - queuedAt < ALREADY_FINAL_MS;
      this.ages.learn(event.after - queuedAt, isAlreadyFinal ? 0 : at - queuedAt);
      isOther = this.#learnWait(final, weight);
    }
    if (slots) queue.catchUp(item, at);
    queue.remove(item, at);
    if (!known && this.#clock.learn(group, this.ages.medianMs / LEAST_AGE)) {
      this.#beginSlots();
      isOther = true;
    }
    return { lagMs, isNews, isOther };
  }

  #lagMs(item: Candidate, cohort: Cohort | null, after: number, at: number): number {
    if (this.slots && cohort) return this.slots.expected({ start: cohort, openAt: item.openAt }, at).lagMs;
    return Math.min(at - after, LONGEST_LAG_MS) / 2;
  }

  /** The clock is another one: all that was learned of slots before means nothing. */
  #beginSlots(): void {
    this.slots = this.#clock.state && new SlotModel(this.#clock);
    for (let round = 0; round < RECENT.rounds; round++)
      for (const final of this.#recent) this.#learnWait(final, RECENT.weight);
  }

  /** Returns whether another number of senders is believed now. */
  #learnWait({ order, queuedAt, openAt, foundAt, isExact }: Final, weight: number): boolean {
    const { slots } = this;
    if (!slots || order === 0) return false;
    const slot = slots.slotAt(foundAt);
    const beganAt = this.queue.beganAt(order, queuedAt);
    if (beganAt !== null) slots.learnWait(beganAt, openAt, slot, isExact, weight);
    return this.queue.learn(order, queuedAt, slot, (time) => slots.startOf(time).slot, weight);
  }
}
