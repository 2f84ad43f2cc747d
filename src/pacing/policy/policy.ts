import type { Observation } from '../../domain/classify.ts';
import {
  type Candidate,
  NEVER,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
  type PolicyReason,
  type PollingCost,
} from '../policy.ts';
import { ceilingMs } from '../safety-limit.ts';
import { AgeDistribution } from './age-distribution.ts';
import { nextCheck } from './checking-schedule.ts';
import { readState, writeState } from './learned-state.ts';
import { Line } from './line.ts';
import { bestSchedule, everyFiveSeconds } from './outlook.ts';
import { SenderCount } from './sender-count.ts';
import { CELLS, type Prospect, SlotBelief } from './slot-belief.ts';
import { SlotClock } from './slot-clock.ts';
import { SLOTS, SlotDistribution } from './slot-distribution.ts';

export type LearnedPacingSettings = { lagPrice: number };

/** Submissions that began to wait in the same slot: consecutive in the line. */
type Outlook = { before: number; within: number; previous: number; openSlot: number };

type Cohort = {
  slot: number;
  zone: number;
  first: number;
  open: number;
  scout: Candidate | null;
  scoutedFor: number;
  final: boolean;
  openAt: number;
};

/** While no clock is known, the head of the line is worth at most so many. */
const LOOKOUT = 8;
/** Where no clock is found in so many finals, the head looks out only in some of those that follow. */
const SEARCH = { finals: 100, every: 400 };
/**
 * Who waits for the next slot waits for half of its period in the mean, whatever the finality gap. Where half of the
 * submissions take less than this share of a period, they do not wait for it.
 */
const LEAST_AGE = 0.25;
const OVERDUE_SLOTS = 3.2;
/** Rows of one block are updated within seconds. */
const RESTARTED_MS = 60_000;
const CURVE_STEP = 5;
/** So many are given an earlier time at once: no budget polls more within a slot, and a million would block the process. */
const MOST_AT_ONCE = 10_000;
/** While no slots are known, a submission stands in line for so long: then its order says nothing any more. */
const IN_LINE_MS = 6 * 3_600_000;
/** A sender waits for finality for so long. */
const TIMEOUT_MS = 120_000;
/** So many finals teach little. */
const LEARNING = 100;
const NET = { maxIntervalMs: 60_000 };
const ALREADY_FINAL = { initial: 0.03, rate: 1 / 25, waitS: 30 };

export function learnedPacing(settings: LearnedPacingSettings): PolicyFactory {
  return (deps) => new LearnedPacing(settings, deps);
}

class LearnedPacing implements PacingPolicy {
  readonly #price: number;
  readonly #move: (item: Candidate, dueAt: number) => void;
  readonly #random: () => number;
  #clock = new SlotClock();
  #ages: AgeDistribution;
  #slots = new SlotDistribution();
  #senders = new SenderCount();
  readonly #line = new Line();
  /** The submission that the scheduler holds at the moment: it is in no queue. */
  #inHand: Candidate | null = null;
  readonly #scratch = { weights: new Float64Array(SLOTS + 1), unseen: new Float64Array(SLOTS + 1) };
  #cohorts: Cohort[] = [];
  /** Orders below this one have begun. */
  #begun = 1;
  #belief: SlotBelief | null = null;
  /** How many slots without event came just before this one. */
  #run = 0;
  #future: SlotBelief | null = null;
  #futureVersion = -1;
  readonly #plans = new Map<string, number>();
  #plansVersion = '';
  /** When submissions whose sending failed were queued again, as far as they have been since they were tracked. */
  /** Probability that the last slots had no event. */
  readonly #past = new Map<number, number>();
  readonly #requeued = new Map<Candidate, number>();
  readonly #blocks = new Map<number, { after: number; by: number; foundAt: number }>();
  #lastEventBy = NEVER;
  #alreadyFinal = ALREADY_FINAL.initial;
  /** The newest finals, to begin with where a clock becomes known. */
  readonly #recent: {
    order: number;
    trackedAt: number;
    openAt: number;
    at: number;
    foundAt: number;
    isKnown: boolean;
  }[] = [];
  /** Polls since the last final. */
  #polls = 0;
  #current: PollingCost | null = null;
  #learnedInSlot = 0;
  #learnedSlot = 0;
  /** Finals since there was a clock last. */
  #searched = 0;

  constructor(settings: LearnedPacingSettings, deps: Parameters<PolicyFactory>[0]) {
    this.#price = settings.lagPrice;
    this.#ages = new AgeDistribution(settings.lagPrice);
    this.#move = deps.move;
    this.#random = deps.random;
  }

  enrol(item: Candidate, { polledAt }: { polledAt: number | null }, now: number): number {
    this.#inHand = item;
    if (polledAt !== null) item.openAt = polledAt;
    this.#roll(now);
    this.#line.append(item);
    this.#begin(now, item);
    return this.#dueAt(item, now);
  }

  learn(item: Candidate, observation: Observation, now: number): number {
    this.#inHand = item;
    this.#roll(now);
    this.#polls++;
    const sentAt = observation.at - observation.durationMs;
    switch (observation.kind) {
      case 'finalized':
        this.#final(item, observation.blockNumber, observation.at, now);
        return now;
      case 'error':
        // A submission in Error is not on its way to a block: that it is open is no evidence about the slot.
        item.openAt = Math.max(item.openAt, sentAt);
        // A submission that waits to be sent again has left its sender already.
        if (item.order < this.#begun) this.#requeue(item, sentAt, now);
        break;
      case 'pending':
      case 'not_found':
        this.#open(item, sentAt);
        break;
      case 'rejected':
      case 'unauthorized':
      case 'throttled':
      case 'unavailable':
        return now + 1_000 + 4_000 * this.#random();
      default:
        return observation satisfies never;
    }
    // One that never becomes final must not keep the places of all that came behind it.
    if (!this.#clock.state && item.order > 0 && now - this.#queuedAt(item) > IN_LINE_MS) this.#leaveLine(item, now);
    this.#nextScout(item, now);
    return this.#dueAt(item, now, true);
  }

  leave(item: Candidate, now: number): void {
    this.#inHand = item;
    this.#leaveLine(item, now);
    this.#requeued.delete(item);
    this.#lookOut(now);
  }

  /** When the item is to be polled by all that is known now, which may be later than was thought when it was scheduled. */
  confirm(item: Candidate, now: number): number {
    this.#inHand = item;
    this.#roll(now);
    return this.#dueAt(item, now);
  }

  learned(): string {
    const senders = this.#senders.best;
    return writeState({
      version: 3,
      ages: { weights: [...this.#ages.weights], observed: this.#ages.observed },
      clock: this.#clock.state && {
        ...this.#clock.state,
        events: this.#clock.events.map(({ after, by }) => ({ after, by })),
      },
      slots: this.#slots.state,
      senders: senders === Number.POSITIVE_INFINITY ? null : senders,
      alreadyFinal: this.#alreadyFinal,
    });
  }

  recall(text: string): void {
    const state = readState(text);
    if (!state) return;
    this.#ages = new AgeDistribution(this.#price, state.ages);
    this.#clock = new SlotClock(state.clock, state.clock?.events);
    this.#slots = new SlotDistribution(state.slots);
    this.#senders = new SenderCount(state.senders ?? Number.POSITIVE_INFINITY);
    this.#alreadyFinal = state.alreadyFinal;
  }
  describe(now: number): PacingDescription {
    this.#roll(now);
    const { state } = this.#clock;
    const curve = state ? this.#slotCurve(now) : this.#ages.curve();
    const { pollsMs, cost } = bestSchedule(curve, this.#price);
    return {
      mode: state ? 'slots' : 'age',
      slot: state && { periodMs: state.periodMs, nextEventAt: this.#nextEventAt(now), emptyShare: this.#slots.empty },
      senders: this.#senders.best === Number.POSITIVE_INFINITY ? null : this.#senders.best,
      observed: this.#ages.observed,
      lagPrice: this.#price,
      curve,
      pollsMs,
      current: this.#current,
      lowerBound: cost,
      everyFiveSeconds: everyFiveSeconds(curve),
    };
  }

  /** Of a submission tracked now, which nobody waits in front of. */
  #slotCurve(now: number): { afterMs: number; probability: number }[] {
    const position = this.#clock.position(now);
    const start = this.#slots.slotOf(position);
    const zone = this.#slots.zoneOf(position);
    const cdf = this.#futureBelief().cdf({ before: 0, within: 1 });
    const curve = [{ afterMs: 0, probability: 0 }];
    for (let slot = start; slot < start + SLOTS; slot++) {
      const { before, within } = this.#outlook(start, zone, NEVER, slot);
      for (let cell = CURVE_STEP - 1; cell < CELLS; cell += CURVE_STEP) {
        const afterMs = this.#clock.timeOf(slot + (cell + 1) / CELLS) - now;
        const probability = Math.min(1, before + within * (cdf[cell] as number));
        if (afterMs > 0) curve.push({ afterMs, probability: Math.max(probability, curve.at(-1)?.probability ?? 0) });
      }
      if ((curve.at(-1)?.probability ?? 0) > 0.998) break;
    }
    return curve;
  }

  #nextEventAt(now: number): number {
    const cdf = this.#futureBelief().cdf({ before: 0, within: 1 });
    const median =
      Math.max(
        0,
        cdf.findIndex((p) => p > 0.5),
      ) / CELLS;
    const slot = Math.ceil(this.#clock.position(now) - median);
    return this.#clock.timeOf(slot + median);
  }

  /** Measured: polls per final, and how long each was probably final before it was found. */
  #measure(lagMs: number): void {
    const known = this.#current;
    const rate = known ? Math.max(0.01, 1 / (this.#ages.observed + 1)) : 1;
    const { requests, lagS } = known ?? { requests: 0, lagS: 0 };
    this.#current = {
      requests: requests + rate * (this.#polls - requests),
      lagS: lagS + rate * (lagMs / 1_000 - lagS),
    };
    this.#polls = 0;
  }

  gain(item: Candidate, now: number): number {
    const belief = this.#belief;
    const cohort = this.#clock.state ? this.#cohortOf(item) : null;
    if (!belief || !cohort) return 0.05;
    const { prospect, since } = this.#prospect(cohort, item.openAt, belief.slot);
    const cdf = belief.cdf(prospect);
    const done = since < 0 ? 0 : (cdf[since] as number);
    return ((cdf[Math.max(0, this.#cellOf(now, belief.slot))] as number) - done) / Math.max(1e-6, 1 - done);
  }

  why(item: Candidate, now: number): PolicyReason {
    if (now >= this.#netAt(item, now)) return 'net';
    if (!this.#clock.state) return 'age';
    return this.#cohortOf(item)?.scout === item ? 'scout' : 'slot';
  }

  // --- what observations say

  #open(item: Candidate, sentAt: number): void {
    const belief = this.#belief;
    const cohort = this.#cohortOf(item);
    if (cohort) cohort.openAt = Math.max(cohort.openAt, sentAt);
    if (belief && cohort) {
      const cell = this.#cellOf(sentAt, belief.slot);
      if (cell >= 0) {
        const { prospect, since, previous } = this.#prospect(cohort, item.openAt, belief.slot);
        const none = this.#past.get(belief.slot - 1);
        // It would show an event of the last slot that nobody has seen.
        if (none !== undefined && since < 0)
          this.#past.set(belief.slot - 1, none / (none + (1 - none) * (1 - previous)));
        belief.open(prospect, since, Math.max(since, cell - 1));
      }
    }
    item.openAt = Math.max(item.openAt, sentAt);
  }

  #final(item: Candidate, block: number | null, at: number, now: number): void {
    let knownBlock = block === null ? undefined : this.#blocks.get(block);
    if (knownBlock && item.openAt > knownBlock.foundAt + RESTARTED_MS) {
      // It was open long after its block was final: the chain has started again, with the same numbers.
      this.#blocks.clear();
      knownBlock = undefined;
    }
    const known = knownBlock?.foundAt;
    const isFirstPoll = item.openAt === NEVER;
    const queuedAt = this.#queuedAt(item);
    const isOld = isFirstPoll && ((known !== undefined && known <= item.trackedAt) || at - item.trackedAt < 1_000);
    this.#alreadyFinal += ALREADY_FINAL.rate * ((isOld ? 1 : 0) - this.#alreadyFinal);
    const cohort = this.#cohortOf(item);
    if (isOld) {
      if (cohort && !cohort.final) {
        cohort.final = true;
        this.#each(
          cohort,
          (other) => other !== item && other.openAt === NEVER && this.#sooner(other, now),
          MOST_AT_ONCE,
        );
      }
      this.#leaveLine(item, at);
      return;
    }
    const after = Math.max(item.openAt, queuedAt);
    const event = knownBlock ?? { after: Math.max(after, cohort?.openAt ?? NEVER), by: at, foundAt: at };
    if (knownBlock) {
      // Each member of a block bounds the moment of its finality.
      knownBlock.by = Math.min(knownBlock.by, at);
      if (after < knownBlock.by) knownBlock.after = Math.max(knownBlock.after, after);
    } else if (block !== null) {
      this.#blocks.set(block, event);
      if (this.#blocks.size > 512)
        for (const oldest of this.#blocks.keys()) {
          this.#blocks.delete(oldest);
          break;
        }
    }
    const weight = this.#weight();
    this.#measure(this.#lagOf(item, cohort, known ?? null, after, at));
    if (weight > 0.02) this.#ages.learn(after - queuedAt, at - queuedAt);
    this.#recent.push({
      order: item.order,
      trackedAt: queuedAt,
      openAt: item.openAt,
      at,
      foundAt: known ?? at,
      isKnown: known !== undefined,
    });
    if (this.#recent.length > 100) this.#recent.shift();
    this.#searched = this.#clock.state ? 0 : this.#searched + 1;
    if (this.#clock.state) this.#learnSlot(item, cohort, { known, at, weight }, now);
    if (item.order >= this.#begun && this.#clock.state) this.#senders.catchUp(item.order, at);
    this.#leaveLine(item, at);
    const isNews =
      block !== null
        ? known === undefined
        : at - this.#lastEventBy > (this.#clock.state ? this.#clock.state.periodMs / 3 : 2_000);
    if (isNews) {
      this.#lastEventBy = at;
      if (this.#clock.learn(event, this.#ages.medianMs / LEAST_AGE)) this.#restart(now);
    }
  }

  /** How long it was final, as far as can be told. */
  #lagOf(item: Candidate, cohort: Cohort | null, known: number | null, after: number, at: number): number {
    const belief = this.#belief;
    if (known !== null) return Math.max(0, at - known);
    if (!belief || !cohort) return Math.min(at - after, 60_000) / 2;
    const { prospect, since } = this.#prospect(cohort, item.openAt, belief.slot);
    const cdf = belief.cdf(prospect);
    const cell = this.#cellOf(at, belief.slot);
    const done = since < 0 ? prospect.before : (cdf[since] as number);
    const found = (cdf[cell] as number) - done;
    if (!(found > 1e-6)) return 0;
    let sum = 0;
    for (let i = Math.max(0, since); i < cell; i++) sum += (cdf[i] as number) - done;
    return ((sum / found) * (this.#clock.state?.periodMs ?? 0)) / CELLS;
  }

  #learnSlot(
    item: Candidate,
    cohort: Cohort | null,
    { known, at, weight }: { known: number | undefined; at: number; weight: number },
    now: number,
  ): void {
    const position = this.#clock.position(at);
    // A block that was found final in an earlier slot was so then.
    const foundSlot = Math.floor(known !== undefined ? this.#clock.position(known) : position);
    const belief = this.#belief;
    const cellNow = this.#cellOf(now, belief?.slot ?? 0);
    const hadHappened = belief?.hasHappenedBy(cellNow) ?? false;
    if (belief && cohort && foundSlot === belief.slot) {
      const { prospect, since, previous } = this.#prospect(cohort, item.openAt, belief.slot);
      const none = this.#past.get(belief.slot - 1);
      const cell = this.#cellOf(at, belief.slot);
      if (none !== undefined && since < 0 && known === undefined) {
        const now = belief.cdf({ before: 0, within: prospect.within })[cell] as number;
        this.#past.set(belief.slot - 1, (none * now) / Math.max(1e-9, none * now + (1 - none) * (previous + now)));
      }
      belief.final(prospect, since, cell);
    }
    if (
      weight > 0.02 &&
      item.order > 0 &&
      this.#learnOne(
        { trackedAt: this.#queuedAt(item), openAt: item.openAt, isKnown: known !== undefined },
        item.order,
        foundSlot,
        weight,
      )
    )
      this.#regroup(now);
    if (belief && !hadHappened && belief.hasHappenedBy(cellNow)) this.#wake(belief, now);
  }

  /** Returns whether the number of senders is believed to be another. */
  #learnOne(
    { trackedAt, openAt, isKnown }: { trackedAt: number; openAt: number; isKnown: boolean },
    order: number,
    foundSlot: number,
    weight: number,
  ): boolean {
    const clock = this.#clock;
    const began = this.#senders.beganAt(order, trackedAt);
    if (began !== null) {
      const position = clock.position(began);
      const zone = this.#slots.zoneOf(position);
      this.#outlook(this.#slots.slotOf(position), zone, openAt, foundSlot);
      const { weights, unseen } = this.#scratch;
      const hazards = this.#slots.hazards(zone);
      for (let k = 0; k <= SLOTS; k++)
        unseen[k] = (isKnown ? 0 : (unseen[k] as number)) + (weights[k] as number) * (hazards[k] as number);
      this.#slots.learnFinal(position - Math.floor(position), unseen, weight);
    }
    return this.#senders.learn(order, trackedAt, foundSlot, (time) => this.#slots.slotOf(clock.position(time)), weight);
  }

  /** The event of the slot has come: whoever could have part in it is looked at anew. */
  #wake(belief: SlotBelief, now: number): void {
    for (const cohort of this.#cohorts) {
      const k = belief.slot - cohort.slot;
      if (k < 0 || k > SLOTS) continue;
      this.#each(cohort, (item) => this.#sooner(item, this.#dueAt(item, now)), MOST_AT_ONCE);
    }
  }

  #weight(): number {
    const slot = Math.floor(this.#clock.state ? this.#clock.position(this.#lastEventBy) : 0);
    if (slot !== this.#learnedSlot) [this.#learnedSlot, this.#learnedInSlot] = [slot, 0];
    return 1 / (1 + this.#learnedInSlot++ / 2);
  }

  // --- the line

  #queuedAt(item: Candidate): number {
    return this.#requeued.get(item) ?? item.trackedAt;
  }

  /** The upstream sends it again, behind the others. */
  #requeue(item: Candidate, at: number, now: number): void {
    this.#leaveLine(item, now);
    this.#requeued.set(item, at);
    this.#line.append(item);
    this.#begin(now, item);
  }

  #leaveLine(item: Candidate, at: number): void {
    if (item.order === 0) return;
    const cohort = this.#cohortOf(item);
    this.#line.remove(item);
    if (cohort) {
      cohort.open--;
      if (cohort.scout === item) cohort.scout = null;
    }
    this.#senders.depart(at);
    this.#begin(at, null);
  }

  /** Takes whoever is to be sent next into a cohort. */
  #begin(now: number, entering: Candidate | null): void {
    if (!this.#clock.state) return;
    let moved = 0;
    for (; this.#begun < this.#line.end; this.#begun++) {
      const item = this.#line.get(this.#begun);
      if (!item) continue;
      const began = this.#senders.beganAt(this.#begun, this.#queuedAt(item));
      if (began === null) {
        this.#sooner(item, this.#dueAt(item, now));
        return;
      }
      const cohort = this.#join(item, this.#clock.position(began));
      if (item !== entering && moved++ < MOST_AT_ONCE) this.#sooner(item, this.#dueAt(item, now));
      // A scout is worth more the more depend on it.
      if (cohort.scout && cohort.scout !== item && cohort.open >= 2 * cohort.scoutedFor)
        this.#scout(cohort, cohort.scout, now);
    }
  }

  #join(item: Candidate, position: number): Cohort {
    let cohort = this.#cohorts.at(-1);
    const slot = this.#slots.slotOf(position);
    const zone = this.#slots.zoneOf(position);
    if (!cohort || cohort.slot < slot || (cohort.slot === slot && cohort.zone !== zone)) {
      cohort = { slot, zone, first: item.order, open: 0, scout: null, scoutedFor: 0, final: false, openAt: NEVER };
      this.#cohorts.push(cohort);
    }
    cohort.open++;
    if (!cohort.scout) {
      cohort.scout = item;
      cohort.scoutedFor = 1;
    }
    return cohort;
  }

  #cohortOf(item: Candidate): Cohort | null {
    if (item.order === 0 || item.order >= this.#begun) {
      // The one that is just joining.
      const last = this.#cohorts.at(-1);
      return item.order === this.#begun &&
        item.order > 0 &&
        last &&
        last.first <= item.order &&
        this.#senders.beganAt(item.order, this.#queuedAt(item)) !== null
        ? last
        : null;
    }
    let low = 0;
    let high = this.#cohorts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#cohorts[middle] as Cohort).first <= item.order) low = middle;
      else high = middle - 1;
    }
    const cohort = this.#cohorts[low];
    return cohort && cohort.first <= item.order ? cohort : null;
  }

  #each(cohort: Cohort, visit: (item: Candidate) => unknown, most = Number.POSITIVE_INFINITY): void {
    const end = this.#endOf(cohort);
    let visited = 0;
    for (let order = Math.max(cohort.first, this.#line.begin); order < end && visited < most; order++) {
      const item = this.#line.get(order);
      if (!item) continue;
      visit(item);
      visited++;
    }
  }

  #endOf(cohort: Cohort): number {
    const index = this.#cohorts.indexOf(cohort);
    return this.#cohorts[index + 1]?.first ?? this.#begun;
  }

  #nextScout(item: Candidate, now: number): void {
    const cohort = this.#cohortOf(item);
    if (!cohort || (cohort.scout && cohort.scout !== item)) return;
    const end = this.#endOf(cohort);
    const span = end - cohort.first;
    for (let step = 1; step <= span; step++) {
      const other = this.#line.get(cohort.first + ((item.order - cohort.first + step) % span));
      if (!other) continue;
      this.#scout(cohort, other, now);
      return;
    }
    cohort.scout = null;
  }

  #scout(cohort: Cohort, item: Candidate, now: number): void {
    cohort.scout = item;
    cohort.scoutedFor = cohort.open;
    this.#sooner(item, this.#dueAt(item, now));
  }

  #sooner(item: Candidate, dueAt: number): void {
    if (item !== this.#inHand && dueAt < item.dueAt - 1) this.#move(item, dueAt);
  }

  /** Slots pass: what the last one showed is learned, and whoever took too long goes its own way. */
  #roll(now: number): void {
    if (!this.#clock.state) return;
    const slot = Math.floor(this.#clock.position(now));
    if (this.#belief?.slot === slot) return;
    const belief = this.#belief;
    if (belief?.isInformed) this.#slots.learnSlot(belief.observations, this.#run, belief.posterior[CELLS] as number);
    if (belief?.isInformed) this.#past.set(belief.slot, belief.posterior[CELLS] as number);
    this.#run = belief?.slot === slot - 1 && (this.#past.get(slot - 1) ?? 0) > 0.5 ? this.#run + 1 : 0;
    for (const old of this.#past.keys()) if (old < slot - SLOTS || old > slot) this.#past.delete(old);
    this.#belief = new SlotBelief(slot, this.#slots, this.#slots.emptyAfter(this.#run));
    while (
      this.#cohorts.length > 0 &&
      ((this.#cohorts[0] as Cohort).slot < slot - SLOTS || (this.#cohorts[0] as Cohort).open === 0)
    ) {
      const cohort = this.#cohorts[0] as Cohort;
      if (this.#cohorts.length === 1 && cohort.open === 0) break;
      this.#each(cohort, (item) => {
        this.#line.remove(item);
        this.#senders.depart(now);
      });
      this.#cohorts.shift();
    }
    this.#line.trim(this.#cohorts[0]?.first ?? this.#begun);
    this.#giveUp(now);
    this.#begin(now, null);
  }

  /** A serial sender waits for so long only: it takes the next one, and what it gave up is sent again behind the others. */
  #giveUp(now: number): void {
    if (this.#senders.best === Number.POSITIVE_INFINITY) return;
    for (let item = this.#line.first(); item && item.order < this.#begun; item = this.#line.first()) {
      const began = this.#senders.beganAt(item.order, this.#queuedAt(item));
      if (began === null || now < began + TIMEOUT_MS) return;
      if (this.#requeued.has(item)) this.#leaveLine(item, began + TIMEOUT_MS);
      else this.#requeue(item, began + TIMEOUT_MS, now);
    }
  }

  /** The clock is another one: slots learned before mean nothing. */
  #restart(now: number): void {
    this.#slots = new SlotDistribution();
    if (this.#clock.state)
      this.#slots.begin(
        this.#clock.events.map(({ after, by }) => {
          const slot = Math.floor(this.#clock.position(by));
          return [
            {
              prospect: { before: 0, within: 0.95 },
              since: this.#cellOf(after, slot),
              at: this.#cellOf(by, slot),
              isFinal: true,
            },
          ];
        }),
      );
    this.#belief = null;
    if (this.#clock.state) {
      const counts = new Map<number, number>();
      for (let round = 0; round < 2; round++)
        for (const final of this.#recent) {
          const slot = Math.floor(this.#clock.position(final.foundAt));
          const count = counts.get(slot) ?? 0;
          counts.set(slot, count + 1);
          if (final.order > 0) this.#learnOne(final, final.order, slot, 0.5 / (1 + count / 2));
        }
    }
    this.#regroup(now);
  }

  #regroup(now: number): void {
    this.#cohorts = [];
    this.#begun = this.#line.begin;
    this.#belief = null;
    this.#plans.clear();
    this.#roll(now);
    this.#begin(now, null);
  }

  // --- when to poll

  #dueAt(item: Candidate, now: number, jitter = false): number {
    const netAt = this.#netAt(item, now);
    const ownAt = this.#ownAt(item, now, jitter);
    // Not Math.min: the net holds for a time that is no number, too.
    return Math.max(now, ownAt < netAt ? ownAt : netAt);
  }

  /** The safety net: whatever is believed, nobody is left alone for longer. */
  #netAt(item: Candidate, now: number): number {
    return Math.max(item.trackedAt, item.openAt) + ceilingMs(NET, now - item.trackedAt);
  }

  #ownAt(item: Candidate, now: number, jitter: boolean): number {
    const cohort = this.#clock.state ? this.#cohortOf(item) : null;
    if (item.openAt === NEVER) {
      if (cohort?.final) return now;
      const worth = this.#alreadyFinal * this.#price * ALREADY_FINAL.waitS * (cohort?.scout === item ? cohort.open : 1);
      if (worth > 1) return now;
    }
    if (cohort) return this.#slotAt(item, cohort, now, jitter);
    if (this.#clock.state && item.order > 0)
      return item.order === this.#begun ? this.#overdueAt(item) : Number.POSITIVE_INFINITY;
    return this.#ageAt(item, jitter);
  }

  /** Nobody has left for longer than usual: perhaps somebody has, and it was not seen. The next in line looks out, once a slot. */
  #overdueAt(item: Candidate): number {
    const { periodMs } = this.#clock.state as { periodMs: number };
    return Math.max(this.#senders.lastDepartureAt + OVERDUE_SLOTS * periodMs, item.openAt + periodMs);
  }

  #ageAt(item: Candidate, jitter: boolean): number {
    const queuedAt = this.#queuedAt(item);
    const from = Math.max(0, item.openAt - queuedAt);
    const isLookout = !this.#clock.state && this.#searched % SEARCH.every < SEARCH.finals && item === this.#head();
    const next = this.#ages.nextAgeMs(from, isLookout ? bucket(Math.min(LOOKOUT, this.#line.size)) : 1);
    const shift = jitter && !isLookout ? (next - from) * 0.2 * (this.#random() - 0.5) : 0;
    const at = queuedAt + next + shift;
    if (!isLookout || this.#line.size < 4 || this.#ages.observed > LEARNING) return at;
    // What is learned from the first few says little about the others, and all wait for it.
    return Math.min(at, Math.max(item.openAt, queuedAt) + Math.max(3_000, from / 30));
  }

  /** The submission that has waited longest: while no clock is known, it looks out for all. */
  #head(): Candidate | undefined {
    return this.#line.first();
  }

  #lookOut(now: number): void {
    if (this.#clock.state) return;
    const head = this.#head();
    if (head) this.#sooner(head, this.#dueAt(head, now));
  }

  #slotAt(item: Candidate, cohort: Cohort, now: number, jitter: boolean): number {
    const { periodMs } = this.#clock.state as { periodMs: number };
    const position = this.#clock.position(now);
    const slotNow = Math.floor(position);
    const isScout = cohort.scout === item;
    // A scout searches for its cohort: what was open in this slot was not final in an earlier one.
    const openAt = isScout ? Math.max(item.openAt, Math.min(cohort.openAt, this.#clock.timeOf(slotNow))) : item.openAt;
    for (let slot = slotNow; slot <= Math.max(slotNow, cohort.slot + SLOTS); slot++) {
      const isNow = slot === slotNow;
      const belief = isNow ? (this.#belief as SlotBelief) : this.#futureBelief();
      const isSearched = !isNow || !belief.hasHappenedBy(this.#cellOf(now, slot));
      const weight = isScout && isSearched ? bucket(cohort.open) : 1;
      const from = isNow ? Math.min(CELLS - 1, Math.ceil((position - slotNow) * CELLS - 0.01)) : 0;
      const openSlot = openAt === NEVER ? Number.NEGATIVE_INFINITY : Math.floor(this.#clock.position(openAt));
      const since = openSlot === slot ? this.#cellOf(openAt, slot) : -1;
      const cell = this.#plan(cohort, openAt, slot, { belief, isNow, weight, from, since, openSlot });
      if (cell < 0) continue;
      const at = this.#clock.timeOf(slot + cell / CELLS);
      if (!jitter || isScout || weight > 1) return at;
      const wait = Math.min(at - now, 0.15 * periodMs);
      return at + wait * this.#slots.curiosity * (this.#random() - 0.5);
    }
    return this.#ageAt(item, jitter);
  }

  #plan(
    cohort: Cohort,
    openAt: number,
    slot: number,
    {
      belief,
      isNow,
      weight,
      from,
      since,
      openSlot,
    }: { belief: SlotBelief; isNow: boolean; weight: number; from: number; since: number; openSlot: number },
  ): number {
    const version = `${this.#slots.version}/${this.#belief?.slot}/${this.#belief?.version}`;
    if (version !== this.#plansVersion) {
      this.#plans.clear();
      this.#plansVersion = version;
    }
    const k = slot - cohort.slot;
    const partial =
      openSlot < slot && openSlot >= cohort.slot ? Math.round(20 * (this.#clock.position(openAt) - openSlot)) : -1;
    const key = `${isNow ? 1 : 0}.${cohort.zone}.${k}.${weight}.${from}.${since}.${Math.max(-1, openSlot - cohort.slot)}.${partial}`;
    const known = this.#plans.get(key);
    if (known !== undefined) return known;
    const { prospect } = this.#prospect(cohort, openAt, slot);
    const cell =
      prospect.before + prospect.within < 0.002 ? -1 : this.#solve(belief, prospect, { weight, from, since });
    this.#plans.set(key, cell);
    return cell;
  }

  #solve(
    belief: SlotBelief,
    prospect: Prospect,
    { weight, from, since }: { weight: number; from: number; since: number },
  ): number {
    const periodS = (this.#clock.state as { periodMs: number }).periodMs / 1_000;
    const cdf = belief.cdf(prospect);
    if (since >= 0) {
      const done = cdf[since] as number;
      for (let i = 0; i < CELLS; i++) cdf[i] = i <= since ? 0 : ((cdf[i] as number) - done) / Math.max(1e-6, 1 - done);
    }
    const width = periodS / CELLS;
    return nextCheck({ cdf, widths: widthsOf(width), from, price: this.#price * weight, endLag: periodS * 0.9 });
  }

  /** What is believed of one at the begin of a slot; `since`: the cell of this slot at which it was open, or -1. */
  #prospect(cohort: Cohort, openAt: number, slot: number): { prospect: Prospect; since: number; previous: number } {
    const outlook = this.#outlook(cohort.slot, cohort.zone, openAt, slot);
    const since = outlook.openSlot === slot ? this.#cellOf(openAt, slot) : -1;
    return {
      prospect: { before: outlook.before, within: Math.min(outlook.within, 0.999 - outlook.before) },
      since,
      previous: outlook.previous,
    };
  }

  /**
   * Forward probabilities of the number of slots with an event since it began: a slot without event delays everybody. What
   * may have happened unseen since it was known to be open is `before`.
   */
  #outlook(start: number, zone: number, openAt: number, slot: number): Outlook {
    const hazards = this.#slots.hazards(zone);
    const openPosition = openAt === NEVER ? Number.NEGATIVE_INFINITY : this.#clock.position(openAt);
    const openSlot = Math.floor(openPosition);
    const { weights, unseen } = this.#scratch;
    weights.fill(0);
    unseen.fill(0);
    weights[0] = 1;
    let before = 0;
    let previous = 0;
    for (let at = start, most = 0; at < slot; at++, most = Math.min(SLOTS, most + 1)) {
      const event = 1 - (this.#past.get(at) ?? this.#slots.empty);
      const rest = at === openSlot ? 1 - this.#priorCdf(openPosition - openSlot) : 1;
      let open = 0;
      previous = 0;
      for (let k = most; k >= 0; k--) {
        const w = weights[k] as number;
        if (w === 0) continue;
        const hazard = hazards[k] as number;
        const final = w * event * hazard;
        if (at >= openSlot) {
          unseen[k] = (unseen[k] as number) + final * rest;
          before += final * rest;
          previous += w * hazard * rest;
        }
        const next = Math.min(SLOTS, k + 1);
        weights[k] = next === k ? w - final : w * (1 - event);
        if (next !== k) weights[next] = (weights[next] as number) + w * event * (1 - hazard);
        open += w - final;
      }
      previous /= Math.max(1e-9, open + previous);
      // Until then it is known to have been open.
      if (at < openSlot) for (let k = 0; k <= SLOTS; k++) weights[k] = (weights[k] as number) / Math.max(1e-9, open);
    }
    let within = 0;
    let open = 0;
    for (let k = 0; k <= SLOTS; k++) {
      const w = weights[k] as number;
      open += w;
      within += w * (hazards[k] as number);
    }
    const sum = Math.max(1e-9, open + before);
    return {
      before: before / sum,
      within: slot < start ? 0 : within / sum,
      previous: Math.min(0.995, previous),
      openSlot,
    };
  }

  #priorCdf(phase: number): number {
    const cdf = this.#futureBelief().cdf({ before: 0, within: 1 });
    return cdf[Math.min(CELLS - 1, Math.max(0, Math.floor(phase * CELLS)))] as number;
  }

  #futureBelief(): SlotBelief {
    if (!this.#future || this.#futureVersion !== this.#slots.version) {
      this.#future = new SlotBelief(0, this.#slots, this.#slots.empty);
      this.#futureVersion = this.#slots.version;
    }
    return this.#future;
  }

  #cellOf(time: number, slot: number): number {
    const position = this.#clock.position(time) - slot;
    return Math.max(-1, Math.min(CELLS - 1, Math.floor(position * CELLS)));
  }
}

function bucket(open: number): number {
  return open < 4 ? Math.max(1, open) : 2 ** Math.floor(Math.log2(open));
}

let widths = new Float64Array(0);
function widthsOf(width: number): Float64Array {
  if (widths.length !== CELLS || widths[0] !== width) widths = new Float64Array(CELLS).fill(width);
  return widths;
}
