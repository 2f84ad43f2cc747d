import { rounded } from './age-distribution.ts';
import { checkingSchedule } from './checking-schedule.ts';
import { FinalityModel } from './finality-model.ts';
import {
  type Candidate,
  ceilingMs,
  NEVER,
  type PacingDescription,
  type PacingPolicy,
  type PolicyFactory,
  type PolicyReason,
  type PollingCost,
  type PollResult,
} from './port.ts';
import { CELLS } from './slot-event.ts';
import type { SlotModel } from './slot-model.ts';
import { SLOTS } from './slots-to-wait.ts';
import type { Cohort } from './waiting-line.ts';

export type Curve = PacingDescription['curve'];

const EVERY_MS = 5_000;
/** Maximum number of polls that are computed for a curve of several days. */
const MAX_POLLS = 20_000;
/** Cells of a slot between two points of a curve. */
const CURVE_STEP = 5;
/** A curve ends at this probability. */
const COMPLETE = 0.998;
/** Number of the newest final submissions over which the measured cost is averaged. */
const MEASURED = 100;

/**
 * Returns the optimum poll times of a single submission, their expected cost, and that of polling
 * every 5 s. `lagPrice`: requests per second of lag.
 */
export function describeCurve(
  curve: Curve,
  lagPrice: number,
): Pick<PacingDescription, 'curve' | 'pollsMs' | 'lowerBound' | 'everyFiveSeconds'> {
  const cdf = curve.map(({ probability }) => probability);
  const widths = curve.map(({ afterMs }, i) => (afterMs - (curve[i - 1]?.afterMs ?? 0)) / 1_000);
  const next = checkingSchedule({ cdf, widths, from: 0, price: lagPrice, endLag: 0 });
  const pollsMs: number[] = [];
  for (let i = next[0] ?? -1; i > 0; i = next[i] ?? -1) pollsMs.push(curve[i - 1]?.afterMs ?? 0);
  const count = Math.min(MAX_POLLS, Math.ceil((curve.at(-1)?.afterMs ?? 0) / EVERY_MS) + 1);
  const everyFiveSeconds = Array.from({ length: count }, (_, i) => i * EVERY_MS);
  return {
    curve,
    pollsMs,
    lowerBound: costOf(curve, pollsMs),
    everyFiveSeconds: costOf(curve, everyFiveSeconds),
  };
}

/** Returns the expected requests and lag of a submission polled at these times. */
function costOf(curve: Curve, pollsMs: readonly number[]): PollingCost {
  let requests = 0;
  let lagMs = 0;
  let found = 0;
  let i = 0;
  for (const pollMs of pollsMs) {
    requests += 1 - found;
    for (; i < curve.length && (curve[i] as Curve[number]).afterMs <= pollMs; i++) {
      const { afterMs, probability } = curve[i] as Curve[number];
      const before = curve[i - 1];
      const middleMs = (afterMs + (before?.afterMs ?? 0)) / 2;
      lagMs += (probability - (before?.probability ?? 0)) * (pollMs - middleMs);
      found = probability;
    }
  }
  return { requests, lagS: found > 0 ? lagMs / found / 1_000 : 0 };
}

function slotCurve(slots: SlotModel, now: number): Curve {
  const start = slots.startOf(now);
  const eventCdf = slots.eventCdf();
  const curve = [{ afterMs: 0, probability: 0 }];
  let last = 0;
  for (let slot = start.slot; slot < start.slot + SLOTS && last <= COMPLETE; slot++) {
    const { before, within } = slots.prospect({ start, openAt: NEVER }, slot);
    for (let cell = CURVE_STEP - 1; cell < CELLS; cell += CURVE_STEP) {
      const afterMs = slots.timeOf(slot, cell + 1) - now;
      if (afterMs <= 0) continue;
      last = Math.max(last, Math.min(1, before + within * (eventCdf[cell] as number)));
      curve.push({ afterMs, probability: last });
    }
  }
  return curve;
}

/** Returns the slot time, the median time of the next event, and the share of empty slots. */
function describeSlots(slots: SlotModel, now: number): PacingDescription['slot'] {
  const median = Math.max(
    0,
    slots.eventCdf().findIndex((p) => p > 0.5),
  );
  const present = slots.slotAt(now);
  const inThis = slots.timeOf(present, median);
  const nextEventAt = inThis >= now ? inThis : slots.timeOf(present + 1, median);
  return { periodMs: slots.periodMs, nextEventAt, emptyShare: slots.empty };
}

class MeasuredCost {
  #mean: PollingCost | null = null;
  #finals = 0;
  /** Polls since the last final. */
  #polls = 0;

  get mean(): PollingCost | null {
    return this.#mean;
  }

  poll(): void {
    this.#polls++;
  }

  /** Counts a submission that was found final. `lagMs`: see `lagOf`; null: it is not counted. */
  final(lagMs: number | null): void {
    const polls = this.#polls;
    this.#polls = 0;
    if (lagMs === null) return;
    const rate = Math.max(1 / MEASURED, 1 / ++this.#finals);
    const { requests, lagS } = this.#mean ?? { requests: 0, lagS: 0 };
    this.#mean = {
      requests: requests + rate * (polls - requests),
      lagS: lagS + rate * (lagMs / 1_000 - lagS),
    };
  }
}

export type LearnedPacingSettings = { lagPrice: number };

/** Most submissions rescheduled in one call: no budget allows more polls within a slot. */
export const MAX_RESCHEDULED = 10_000;
/** Time for which the response to a poll is awaited before others are polled for the same event. */
const RESPONSE_MS = 300;
export const NET = { maxIntervalMs: 60_000 };
/** Gain of each poll while no slot time is known. */
const UNKNOWN_GAIN = 0.05;

/** Returns a policy by the learned distribution. `lagPrice`: requests per second of lag. */
export function learnedPacing(settings: LearnedPacingSettings): PolicyFactory {
  return (deps) => new LearnedPacing(settings, deps);
}

/**
 * Schedules polls by the distribution of finality time (finality-model.ts). Terms:
 *
 * - Slot: the fixed period in which a chain makes at most one block. Event: the moment in a slot at
 *   which a group of submissions becomes final; a slot may have none.
 * - Cohort: the submissions that began to wait for finality in the same slot and are likely to
 *   become final with the same event.
 * - Scout: the member of a cohort that is polled first, to find the event on behalf of all that
 *   become final with it. After a poll that finds the scout open, the next member is the scout. The
 *   others are polled when the event has probably happened.
 *
 * Without a known slot time, polls follow the distribution of age, and the head of the waiting line
 * acts as the scout of all (waiting-line.ts).
 */
class LearnedPacing implements PacingPolicy {
  readonly #price: number;
  readonly #reschedule: (item: Candidate, dueAt: number) => void;
  readonly #random: () => number;
  readonly #model: FinalityModel;
  readonly #cost = new MeasuredCost();
  /** The submission of the current call: it is in no queue, so it must not be rescheduled. */
  #current: Candidate | null = null;
  #probe: { item: Candidate; sentAt: number } | null = null;

  constructor(
    { lagPrice }: LearnedPacingSettings,
    { reschedule, random }: Parameters<PolicyFactory>[0],
  ) {
    this.#price = lagPrice;
    this.#model = new FinalityModel(lagPrice);
    this.#reschedule = reschedule;
    this.#random = random;
  }

  register(item: Candidate, { polledAt }: { polledAt: number | null }, now: number): number {
    this.#current = item;
    if (polledAt !== null) item.openAt = polledAt;
    this.#model.advance(now);
    this.#model.append(item);
    this.#beginWaiting(now);
    this.#rescheduleHead(now);
    return this.#dueAt(item, now);
  }

  lagOf(
    item: Candidate,
    { blockNumber, at }: { blockNumber: number | null; at: number },
    now: number,
  ): number | null {
    this.#current = item;
    this.#advance(now);
    return this.#model.lagOf(item, blockNumber, at);
  }

  learn(item: Candidate, result: PollResult, now: number): number {
    this.#current = item;
    this.#advance(now);
    this.#cost.poll();
    if (this.#probe?.item === item) this.#probe = null;
    switch (result.kind) {
      case 'finalized':
        this.#final(item, result.blockNumber, result.at, now);
        return now;
      case 'error':
      case 'pending':
      case 'not_found':
        this.#open(item, result, now);
        return this.#dueAt(item, now);
      case 'rejected':
      case 'unauthorized':
      case 'throttled':
      case 'unavailable':
        return this.#retryAt(item, now);
      default:
        return result satisfies never;
    }
  }

  observeHead(): void {}

  /** Returns when to repeat: after some seconds, or a tenth of the time without evidence. */
  #retryAt({ trackedAt, openAt }: Candidate, now: number): number {
    const silentMs = now - Math.max(trackedAt, openAt);
    const delayMs = Math.max(1_000 + 4_000 * this.#random(), silentMs / 10);
    return now + Math.min(delayMs, ceilingMs(NET, silentMs));
  }

  unregister(item: Candidate, now: number): void {
    this.#current = item;
    const { queue } = this.#model;
    queue.remove(item, now);
    queue.clearRequeue(item);
    if (this.#probe?.item === item) this.#probe = null;
    this.#beginWaiting(now);
    this.#rescheduleHead(now);
  }

  confirm(item: Candidate, now: number): number {
    this.#current = item;
    this.#advance(now);
    const dueAt = this.#dueAt(item, now);
    if (dueAt > now || !this.#isProbe(item, now) || now >= this.#safetyLimitAt(item, now))
      return dueAt;
    const responseAt = (this.#probe?.sentAt ?? NEVER) + RESPONSE_MS;
    if (now < responseAt) return Math.min(responseAt, this.#safetyLimitAt(item, now));
    this.#probe = { item, sentAt: now };
    return dueAt;
  }

  /** Whether a poll is evidence about the event: unless it is final since an earlier one. */
  #isProbe(item: Candidate, now: number): boolean {
    const { slots } = this.#model;
    const cohort = this.#cohortOf(item);
    if (!slots?.isSearched(now) || !cohort) return false;
    return slots.prospect({ start: cohort, openAt: item.openAt }, slots.slotAt(now)).before < 0.9;
  }

  gain(item: Candidate, now: number): number {
    const { slots } = this.#model;
    const cohort = this.#cohortOf(item);
    return slots && cohort
      ? slots.foundBy({ start: cohort, openAt: item.openAt }, now)
      : UNKNOWN_GAIN;
  }

  reasonOf(item: Candidate, now: number): PolicyReason {
    if (now >= this.#safetyLimitAt(item, now)) return 'net';
    if (!this.#model.slots) return 'age';
    return this.#cohortOf(item)?.scout === item ? 'scout' : 'slot';
  }

  snapshot(): string {
    return this.#model.snapshot;
  }

  restore(text: string): void {
    this.#model.restore(text);
  }

  describe(now: number): PacingDescription {
    this.#current = null;
    this.#advance(now);
    const { ages, slots, queue } = this.#model;
    return {
      mode: slots ? 'slots' : 'age',
      slot: slots && describeSlots(slots, now),
      senders: queue.senders,
      observed: ages.observed,
      lagPrice: this.#price,
      current: this.#cost.mean,
      ...describeCurve(slots ? slotCurve(slots, now) : ages.curve(), this.#price),
    };
  }

  #advance(now: number): void {
    if (!this.#model.advance(now)) return;
    this.#beginWaiting(now);
    for (const { scout } of this.#model.queue.line.cohorts)
      if (scout) this.#pollEarlier(scout, now);
  }

  #open(item: Candidate, { kind, at, durationMs }: PollResult, now: number): void {
    const { order } = item;
    this.#model.observeOpen(item, at - durationMs, kind === 'error', now);
    this.#beginWaiting(now);
    const cohort = this.#cohortOf(item);
    if (!cohort || (cohort.scout ?? item) !== item) return;
    for (const next of this.#model.queue.line.membersOf(cohort, order)) {
      this.#appointScout(cohort, next, now);
      return;
    }
  }

  #final(item: Candidate, block: number | null, at: number, now: number): void {
    const { lagMs, isNews, isOther } = this.#model.observeFinal(item, block, at);
    this.#cost.final(lagMs);
    if (isOther) {
      this.#model.queue.line.restart();
      this.#model.advance(now);
    }
    this.#beginWaiting(now);
    if (isNews) this.#rescheduleCohorts(now);
    this.#rescheduleHead(now);
  }

  #rescheduleHead(now: number): void {
    for (const item of this.#model.foremost) this.#pollEarlier(item, now);
  }

  /** Assigns the submissions that have begun to wait for finality to cohorts. */
  #beginWaiting(now: number): void {
    const { slots, queue } = this.#model;
    if (!slots) return;
    let moved = 0;
    for (const { item, cohort } of queue.begin((time) => slots.startOf(time))) {
      if (!cohort.scout) [cohort.scout, cohort.scoutedFor] = [item, 1];
      if (moved++ < MAX_RESCHEDULED) this.#pollEarlier(item, now);
      // The schedule of a scout depends on the size of its cohort.
      if (cohort.size >= 2 * cohort.scoutedFor) this.#appointScout(cohort, cohort.scout, now);
    }
  }

  #appointScout(cohort: Cohort, scout: Candidate, now: number): void {
    cohort.scout = scout;
    cohort.scoutedFor = cohort.size;
    this.#pollEarlier(scout, now);
  }

  #rescheduleCohorts(now: number): void {
    const { line } = this.#model.queue;
    let moved = 0;
    for (const cohort of line.cohorts) {
      for (const item of line.membersOf(cohort)) {
        if (moved++ === MAX_RESCHEDULED) return;
        this.#pollEarlier(item, now);
      }
    }
  }

  #pollEarlier(item: Candidate, now: number): void {
    if (item === this.#current) return;
    const dueAt = this.#dueAt(item, now);
    if (dueAt < item.dueAt - 1) this.#reschedule(item, dueAt);
  }

  #dueAt(item: Candidate, now: number): number {
    const netAt = this.#safetyLimitAt(item, now);
    const ownAt = this.#slotAt(item, now) ?? this.#model.nextPollByAge(item);
    // Not Math.min: the safety net holds even if `ownAt` is NaN.
    return Math.max(now, ownAt < netAt ? ownAt : netAt);
  }

  /** Returns the time by which a submission is polled regardless of the model: the safety net. */
  #safetyLimitAt(item: Candidate, now: number): number {
    return Math.max(item.trackedAt, item.openAt) + ceilingMs(NET, now - item.trackedAt);
  }

  /** Returns the next poll time by the slot model; null if it does not cover the submission. */
  #slotAt(item: Candidate, now: number): number | null {
    const { slots } = this.#model;
    if (!slots || item.order === 0) return null;
    const cohort = this.#cohortOf(item);
    // The submission waits for a sender, so it cannot become final yet.
    if (!cohort) return Number.POSITIVE_INFINITY;
    const isScout = cohort.scout === item;
    const priceOf = (slot: number) =>
      this.#price * (isScout ? rounded(Math.max(1, this.#model.dependents(cohort, slot, now))) : 1);
    // If a member was open in this slot, the event was not in an earlier one.
    const searchedAt = isScout ? Math.min(cohort.openAt, slots.beginOf(now)) : NEVER;
    return slots.nextPollAt(
      { start: cohort, openAt: Math.max(item.openAt, searchedAt) },
      { own: this.#price, search: priceOf },
      now,
    );
  }

  #cohortOf(item: Candidate): Cohort | null {
    return this.#model.queue.line.cohortOf(item);
  }
}
