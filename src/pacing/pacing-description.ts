import { checkingSchedule } from './policy/checking-schedule.ts';
import { CELLS } from './policy/slot-event.ts';
import type { SlotModel } from './policy/slot-model.ts';
import { SLOTS } from './policy/slots-to-wait.ts';
import { NEVER, type PacingDescription, type PollingCost } from './policy.ts';

/** Probability of being final by each time after tracking (ms); not decreasing. */
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
 * Returns the optimum poll times of a single submission with this distribution, and the expected cost of that schedule and
 * of polling every 5 s. `lagPrice`: requests that a second of lag is worth.
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

/** Returns the expected requests and the expected lag of a submission that is polled at these times. */
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

/** Returns the distribution of finality time of a submission that is tracked now. */
export function slotCurve(slots: SlotModel, now: number): Curve {
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

/** Returns the slot time, the median time of the next event, and the share of slots without an event. */
export function describeSlots(slots: SlotModel, now: number): PacingDescription['slot'] {
  const median = Math.max(
    0,
    slots.eventCdf().findIndex((p) => p > 0.5),
  );
  const present = slots.slotAt(now);
  const inThis = slots.timeOf(present, median);
  const nextEventAt = inThis >= now ? inThis : slots.timeOf(present + 1, median);
  return { periodMs: slots.periodMs, nextEventAt, emptyShare: slots.empty };
}

/** The mean cost per submission, measured over the newest final submissions. */
export class MeasuredCost {
  #mean: PollingCost | null = null;
  #finals = 0;
  /** Polls since the last final. */
  #polls = 0;

  get mean(): PollingCost | null {
    return this.#mean;
  }

  /** Counts a poll. */
  poll(): void {
    this.#polls++;
  }

  /** Counts a submission that was found final. `lagMs`: estimated time since it became final. */
  final(lagMs: number): void {
    const rate = Math.max(1 / MEASURED, 1 / ++this.#finals);
    const { requests, lagS } = this.#mean ?? { requests: 0, lagS: 0 };
    this.#mean = { requests: requests + rate * (this.#polls - requests), lagS: lagS + rate * (lagMs / 1_000 - lagS) };
    this.#polls = 0;
  }
}
