import { DurationHistogram } from '../lib/duration-histogram.ts';
import { dataOf } from '../submissions/classify.ts';
import type { FinalChange } from '../submissions/ports.ts';
import { FINAL_STATUSES, Status } from '../submissions/submission.ts';

export type FinalStatus = (typeof FINAL_STATUSES)[number];

/** Sums over the submissions that ended in a period. */
export type RollUp = {
  /** Ended submissions by their final status. */
  ended: Record<FinalStatus, number>;
  /** Changes of finalized submissions by their upstream. */
  corrected: number;
  /** Polls until the submissions ended. */
  requests: number;
  /** From tracking until found final, of finalized submissions. */
  timeToFinality: DurationHistogram;
  /** Time from finality until its detection. */
  lag: DurationHistogram;
  /** Number of those from the chain: a node announced the block. The others are estimates. */
  lagsByChain: number;
  fees: bigint;
  dataBilled: bigint;
  /**
   * Finalized submissions whose fees or billed data are not integers. They count as 0 in the sums.
   */
  unbilled: number;
};

export function emptyRollUp(): RollUp {
  return {
    ended: Object.fromEntries(FINAL_STATUSES.map((status) => [status, 0])) as RollUp['ended'],
    corrected: 0,
    requests: 0,
    timeToFinality: new DurationHistogram(),
    lag: new DurationHistogram(),
    lagsByChain: 0,
    fees: 0n,
    dataBilled: 0n,
    unbilled: 0,
  };
}

/** Adds `other` to `sum`. */
export function addRollUp(sum: RollUp, other: Readonly<RollUp>): void {
  for (const status of FINAL_STATUSES) sum.ended[status] += other.ended[status];
  sum.corrected += other.corrected;
  sum.requests += other.requests;
  sum.timeToFinality.merge(other.timeToFinality);
  sum.lag.merge(other.lag);
  sum.lagsByChain += other.lagsByChain;
  sum.fees += other.fees;
  sum.dataBilled += other.dataBilled;
  sum.unbilled += other.unbilled;
}

/** An integer as upstreams return it, which may be too long for a JavaScript number. */
const INTEGER = /^-?\d{1,60}$/;

/**
 * Returns the billed amounts of the upstream's `data`. An amount that is missing or not an integer
 * is undefined.
 */
export function billingOf(data: Readonly<Record<string, unknown>> | null | undefined) {
  const amount = (value: unknown) => {
    const isNumber = typeof value === 'number' && Number.isSafeInteger(value);
    return isNumber || (typeof value === 'string' && INTEGER.test(value))
      ? BigInt(value)
      : undefined;
  };
  return { fees: amount(data?.fees), dataBilled: amount(data?.data_billed) };
}

/** Returns what one change adds. A submission that was tracked again counts once for each end. */
export function rollUpOf(
  { before, after, at, detection }: FinalChange,
  countedPolls: number,
): RollUp {
  const sums = emptyRollUp();
  const status = after.status as FinalStatus;
  sums.requests = after.polls - countedPolls;
  if (before.status === status) sums.corrected = 1;
  else sums.ended[status] = 1;
  if (status !== Status.finalized) return sums;
  const billing = billingOf(dataOf(after.envelope));
  if (before.status === status) {
    const earlier = billingOf(dataOf(before.envelope));
    sums.fees = (billing.fees ?? 0n) - (earlier.fees ?? 0n);
    sums.dataBilled = (billing.dataBilled ?? 0n) - (earlier.dataBilled ?? 0n);
    sums.unbilled = unbilled(billing) - unbilled(earlier);
    return sums;
  }
  sums.timeToFinality.add(at - after.trackedAt);
  if (detection) sums.lag.add(detection.lagMs);
  if (detection?.source === 'chain') sums.lagsByChain = 1;
  sums.fees = billing.fees ?? 0n;
  sums.dataBilled = billing.dataBilled ?? 0n;
  sums.unbilled = unbilled(billing);
  return sums;
}

function unbilled({ fees, dataBilled }: ReturnType<typeof billingOf>): number {
  return fees === undefined || dataBilled === undefined ? 1 : 0;
}

/** The common property of the submissions of a row, besides their upstream. */
export type ReportGroup =
  /** A credential or a value of the metadata key. */
  | { kind: 'value'; value: string }
  /** Submissions without a credential or without such a value. */
  | { kind: 'none' }
  /** The values that have no row of their own. */
  | { kind: 'other' };

/** Longer values have no row of their own, so that a row has a bounded size. */
const MAX_VALUE_CHARS = 64;

/**
 * Returns the group of a submission by its value of a metadata key: a text, a number or a boolean.
 */
export function groupOf(
  metadata: Readonly<Record<string, unknown>> | null | undefined,
  key: string,
): ReportGroup {
  const value = metadata && Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  if (typeof value === 'number' || typeof value === 'boolean')
    return { kind: 'value', value: String(value) };
  if (typeof value !== 'string') return { kind: 'none' };
  return value.length <= MAX_VALUE_CHARS
    ? { kind: 'value', value: value.toWellFormed() }
    : { kind: 'other' };
}
