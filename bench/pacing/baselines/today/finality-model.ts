import { AGE_CELLS, AgeDistribution, isWeights } from './age-distribution.ts';
import { type Candidate, NEVER } from './port.ts';
import { SenderQueue } from './sender-queue.ts';
import { CLOCK_EVENTS, type FinalityEvent, SlotClock } from './slot-clock.ts';
import { CELLS, DELAYS } from './slot-event.ts';
import { SlotModel } from './slot-model.ts';
import { WAIT_COUNTS } from './slots-to-wait.ts';
import { type Cohort, FinalityOrder } from './waiting-line.ts';

const MAX_BLOCKS = 512;
/** Rows of a block change within seconds. A later finality is of another block of this number. */
const MAX_GROUP_MS = 60_000;

/** `foundAt`, epoch ms, and `lagMs`: of the first member. `members`: number found final so far. */
type Group = FinalityEvent & {
  after: number;
  by: number;
  readonly foundAt: number;
  readonly lagMs: number;
  members: number;
};

/** Submissions final together: with the same block or, without numbers, at about one time. */
class FinalityGroups {
  readonly #blocks = new Map<number, Group>();
  #newest: Group | null = null;

  /**
   * Returns the group of a finality; null if it begins one. Without a block number, the newest
   * group matches for `togetherMs`.
   */
  find(block: number | null, { after, by }: FinalityEvent, togetherMs: number): Group | null {
    if (block === null)
      return this.#newest && by - this.#newest.foundAt <= togetherMs ? this.#newest : null;
    const group = this.#blocks.get(block);
    if (!group || after <= group.foundAt + MAX_GROUP_MS) return group ?? null;
    // Open long after this block was final: the chain has restarted its block numbers.
    this.#blocks.clear();
    return null;
  }

  begin(block: number | null, { after, by, lagMs }: FinalityEvent & { lagMs: number }): Group {
    const group = { after, by, foundAt: by, lagMs, members: 1 };
    this.#newest = group;
    if (block === null) return group;
    this.#blocks.set(block, group);
    const [oldest] = this.#blocks.keys();
    if (this.#blocks.size > MAX_BLOCKS && oldest !== undefined) this.#blocks.delete(oldest);
    return group;
  }

  /** Adds a member, whose interval narrows the interval in which the group became final. */
  addMember(group: Group, { after, by }: FinalityEvent): void {
    group.members++;
    group.by = Math.min(group.by, by);
    if (after < group.by) group.after = Math.max(group.after, after);
  }
}

const VERSION = 4;

type LearnedState = {
  version: typeof VERSION;
  ages: { weights: number[]; observed: number };
  clock: { periodMs: number; originMs: number; events: FinalityEvent[] } | null;
  slots: { event: number[]; delay: number[]; counts: number[]; empty: number } | null;
  senders: number | null;
};

/** Returns JSON with 5 significant digits, more than the evidence has. Times stay exact. */
function writeState({ ages, slots, ...exact }: LearnedState): string {
  const roundedSlots = slots && {
    event: slots.event.map(rounded),
    delay: slots.delay.map(rounded),
    counts: slots.counts.map(rounded),
    empty: rounded(slots.empty),
  };
  const roundedAges = { weights: ages.weights.map(rounded), observed: rounded(ages.observed) };
  return JSON.stringify({ ...exact, ages: roundedAges, slots: roundedSlots });
}

function rounded(value: number): number {
  return value === 0 ? 0 : Number(value.toPrecision(5));
}

/** Returns undefined for invalid text and for another version. */
function readState(text: string): LearnedState | undefined {
  try {
    const state: LearnedState = JSON.parse(text);
    return isValid(state) ? state : undefined;
  } catch {
    return undefined;
  }
}

function isValid({ version, ages, clock, slots, senders }: LearnedState): boolean {
  const isClock =
    clock === null ||
    (isBetween(clock.periodMs, 100, 3_600_000) &&
      isTime(clock.originMs) &&
      clock.events.length <= CLOCK_EVENTS &&
      clock.events.every(({ after, by }) => isTime(after) && isTime(by)));
  const isSlots =
    slots === null ||
    (isDistribution(slots.event, CELLS) &&
      isDistribution(slots.delay, DELAYS) &&
      isWeights(slots.counts, WAIT_COUNTS) &&
      isBetween(slots.empty, 0, 1));
  return (
    version === VERSION &&
    isWeights(ages.weights, AGE_CELLS) &&
    ages.weights.some((weight) => weight > 0) &&
    isCount(ages.observed, 0, Number.MAX_SAFE_INTEGER) &&
    (senders === null || isCount(senders, 1, 1_000)) &&
    isClock &&
    isSlots
  );
}

function isBetween(value: number, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}

function isCount(value: number, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && isBetween(value, least, most);
}

function isTime(value: number): boolean {
  return isBetween(value, -8.64e15, 8.64e15);
}

function isDistribution(values: number[], length: number): boolean {
  return isWeights(values, length) && Math.abs(values.reduce((sum, p) => sum + p, 0) - 1) < 0.01;
}

/** Longest time in the waiting line while no slots are known: its order then has no meaning. */
const MAX_QUEUED_MS = 6 * 3_600_000;
/** Finals from which a found slot time is learned; weight of each, and number of passes. */
const RECENT = { finals: 100, weight: 0.5, rounds: 2 };
/** A final submission of lower weight is not learned from. */
const LEAST_WEIGHT = 0.02;
/** Without block numbers, finalities within this share of a slot (or this time) are one group. */
const TOGETHER = { slots: 1 / 3, ms: 2_000 };
/** A submission that its first poll finds final within this time counts as final at tracking. */
const ALREADY_FINAL_MS = 1_000;
/** Number of final submissions from which the distribution of age is evidence about a lag. */
const LEAST_LEARNED = 10;
/** Share of the unsent submissions that depend on the finality of those that were sent. */
const UNSENT_SHARE = 0.25;

/** `isExact`: final in the slot of `foundAt`, else in that or an earlier one after `openAt`. */
type Final = { order: number; queuedAt: number; openAt: number; foundAt: number; isExact: boolean };

/**
 * When an upstream's submissions become final: by `slots` once a slot time is known, else by their
 * age. `queue`: the line at the upstream's senders. Times are epoch milliseconds.
 */
export class FinalityModel {
  readonly #price: number;
  readonly #groups = new FinalityGroups();
  readonly #recent: Final[] = [];
  #clock = new SlotClock();
  #order = new FinalityOrder();
  ages: AgeDistribution;
  /** Null while no slot time is known. */
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
    return writeState({
      version: VERSION,
      ages: this.ages.state,
      clock,
      slots,
      senders: this.queue.senders,
    });
  }

  restore(text: string): void {
    const state = readState(text);
    if (!state) return;
    this.#order = new FinalityOrder(true);
    this.ages = new AgeDistribution(this.#price, state.ages);
    this.#clock = new SlotClock(state.clock, state.clock?.events);
    this.slots = state.clock && state.slots && new SlotModel(this.#clock, state.slots);
    this.queue = new SenderQueue(state.senders);
  }

  advance(now: number): boolean {
    if (!this.slots?.advance(now)) return false;
    this.queue.expire(this.slots.oldestSlot, now);
    return true;
  }

  /**
   * Adds a submission to the queue. One that is sent at once and has waited for more slots than are
   * followed is left to its age: after a restart, there may be a million.
   */
  append(item: Candidate): void {
    const { slots, queue } = this;
    const isFollowed =
      slots === null ||
      queue.senders !== null ||
      slots.startOf(item.trackedAt).slot >= slots.oldestSlot;
    if (isFollowed) queue.line.append(item);
  }

  /** Learns from a poll sent at `sentAt`. `hasFailed`: the upstream will send it again. */
  observeOpen(item: Candidate, sentAt: number, hasFailed: boolean, now: number): void {
    const cohort = this.queue.line.cohortOf(item);
    if (cohort) {
      cohort.openAt = Math.max(cohort.openAt, sentAt);
      // A submission in Error is not in a block, so it is no evidence about the event of the slot.
      if (!hasFailed) this.slots?.observeOpen({ start: cohort, openAt: item.openAt }, sentAt);
    }
    item.openAt = Math.max(item.openAt, sentAt);
    if (!this.slots) this.#order.observeOpen(item, sentAt, this.queue.line);
    // A submission that waits to be sent again is behind the others already.
    if (hasFailed && (cohort || !this.slots)) this.queue.requeue(item, sentAt);
    // A submission that never becomes final must not stay ahead of all later ones.
    else if (!this.slots && now - this.queue.queuedAt(item) > MAX_QUEUED_MS)
      this.queue.remove(item, now);
  }

  /** See PacingPolicy. */
  lagOf(item: Candidate, block: number | null, at: number): number | null {
    const { queue, slots } = this;
    const queuedAt = queue.queuedAt(item);
    const after = Math.min(at, this.#openAt(item));
    const group = this.#groupOf(block, { after, by: at });
    const cohort = queue.line.cohortOf(item);
    const from = Math.min(at, Math.max(after, group?.after ?? NEVER));
    if (!slots || (!group && !cohort))
      return group || this.ages.observed >= LEAST_LEARNED
        ? this.ages.lagMs(from - queuedAt, at - queuedAt)
        : null;
    if (group && slots.slotAt(group.foundAt) < slots.slotAt(at))
      return Math.min(at - after, at - group.foundAt + group.lagMs);
    const waiting = {
      start: cohort ?? slots.startOf(queuedAt),
      openAt: Math.max(item.openAt, from),
    };
    return Math.min(at - after, slots.lagMs(waiting, at, group !== null));
  }

  /**
   * Learns from a finality at `at`. Returns `lagMs`, `isNews`: the event of the slot has happened,
   * and `isOther`: slot time or number of senders has changed.
   */
  observeFinal(
    item: Candidate,
    block: number | null,
    at: number,
  ): { lagMs: number | null; isNews: boolean; isOther: boolean } {
    const { queue, slots } = this;
    const lagMs = this.lagOf(item, block, at);
    const cohort = queue.line.cohortOf(item);
    const queuedAt = queue.queuedAt(item);
    const event = { after: Math.min(at, this.#openAt(item)), by: at };
    const earlier = this.#groupOf(block, event);
    if (earlier) this.#groups.addMember(earlier, event);
    const group =
      earlier ??
      this.#groups.begin(block, {
        after: Math.max(event.after, cohort?.openAt ?? NEVER),
        by: at,
        lagMs: lagMs ?? 0,
      });
    this.#order.observeFinal(item, block === null ? null : group.members, at, queue.line);
    const isNews =
      slots !== null &&
      cohort !== null &&
      slots.observeFinal({ start: cohort, openAt: item.openAt }, group.foundAt, at);

    const final = {
      order: item.order,
      queuedAt,
      openAt: item.openAt,
      foundAt: group.foundAt,
      isExact: earlier !== null,
    };
    this.#recent.push(final);
    this.#recent.splice(0, this.#recent.length - RECENT.finals);
    // Members of a group are not independent: thousands count little more than a few.
    const weight = 2 / (1 + group.members);
    let isOther = false;
    if (weight > LEAST_WEIGHT) {
      const isAlreadyFinal = item.openAt === NEVER && at - queuedAt < ALREADY_FINAL_MS;
      this.ages.learn(event.after - queuedAt, isAlreadyFinal ? 0 : at - queuedAt);
      isOther = this.#learnWait(final, weight);
    }
    // According to the estimate, the submission still waits to be sent.
    if (slots && !cohort) queue.count.catchUp(item.order, at);
    // Its group was found earlier, but a poll may have found this member open after that.
    queue.removeFinal(item, Math.max(item.openAt, group.foundAt));
    if (!earlier && this.#clock.learn(group, this.ages.medianMs, queue.senders !== null)) {
      this.#beginSlots();
      isOther = true;
    }
    return { lagMs, isNews, isOther };
  }

  /** While no slot time is known: the next submissions to be found final, see FinalityOrder. */
  get foremost(): Candidate[] {
    return this.slots ? [] : this.#order.foremost(this.queue.line);
  }

  /** Returns the time of the next poll by age, epoch ms; NEVER if the submission is overdue. */
  nextPollByAge(item: Candidate): number {
    const { ages, queue, slots } = this;
    const queuedAt = queue.queuedAt(item);
    if (!slots && this.#order.isMissed(item, queue.line)) return NEVER;
    const dependents = slots ? 1 : this.#order.dependents(item, queue.line, ages.observed);
    return queuedAt + ages.nextAgeMs(Math.max(0, item.openAt - queuedAt), dependents);
  }

  /**
   * Returns the expected number of submissions found final with a member of this cohort in a slot.
   * Serial senders wait for these, so that unsent submissions count in part.
   */
  dependents(cohort: Cohort, slot: number, now: number): number {
    const { slots, queue } = this;
    const { cohorts, size } = queue.line;
    const unsent =
      queue.senders === null ? 0 : size - cohorts.reduce((sum, other) => sum + other.size, 0);
    const waiting = UNSENT_SHARE * unsent;
    if (slot !== slots?.slotAt(now)) return cohort.size + waiting;
    const within = (of: Cohort) => slots.prospect({ start: of, openAt: of.openAt }, slot).within;
    const probability = within(cohort);
    return cohorts.reduce(
      (sum, other) => sum + (other.size && other.size * Math.min(probability, within(other))),
      waiting,
    );
  }

  #openAt(item: Candidate): number {
    const byHead = this.slots ? NEVER : this.#order.openAt(item, this.queue.line);
    return Math.max(item.openAt, this.queue.queuedAt(item), byHead);
  }

  #groupOf(block: number | null, event: FinalityEvent): Group | null {
    const { slots } = this;
    const togetherMs = slots ? slots.periodMs * TOGETHER.slots : TOGETHER.ms;
    return this.#groups.find(block, event, togetherMs);
  }

  /** Replaces the slot model: numbers and phases of another clock are not comparable. */
  #beginSlots(): void {
    this.slots = this.#clock.state && new SlotModel(this.#clock);
    // Earlier finals may be of a chain with another slot time.
    const oldest = this.#clock.events[0]?.by ?? 0;
    const finals = this.#recent.filter(({ foundAt }) => foundAt >= oldest);
    for (let round = 0; round < RECENT.rounds; round++)
      for (const final of finals) this.#learnWait(final, RECENT.weight);
  }

  #learnWait({ order, queuedAt, openAt, foundAt, isExact }: Final, weight: number): boolean {
    const { slots } = this;
    if (!slots || order === 0) return false;
    const slot = slots.slotAt(foundAt);
    const beganAt = this.queue.count.beganAt(order, queuedAt);
    if (beganAt !== null) slots.learnWait(beganAt, openAt, slot, isExact, weight);
    return this.queue.count.learn(
      order,
      queuedAt,
      slot,
      (time) => slots.startOf(time).slot,
      weight,
    );
  }
}
