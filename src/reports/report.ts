import type { ObjectiveCounts } from '../submissions/objective.ts';
import { addRollUp, emptyRollUp, type ReportGroup, type RollUp } from './roll-up.ts';

/** Times are epoch milliseconds. */
export type ReportQuery = {
  from: number;
  until: number;
  interval: 'hour' | 'day' | 'total';
  groupBy: 'none' | 'upstream' | 'credential' | 'metadata';
  /** Undefined: all. */
  upstream: string | undefined;
};

/**
 * `counts`: null where they are not known: without an objective, and for groups other than
 * upstreams.
 */
export type ReportSums = { sums: RollUp; counts: ObjectiveCounts | null };
/** The sums of one period and group. */
export type ReportLine = ReportSums & { start: number; group: ReportGroup };

/** Adds up the lines of a report. */
export class ReportTable {
  readonly #query: ReportQuery;
  readonly #lines = new Map<number, Map<string, ReportLine>>();
  readonly total: ReportSums = { sums: emptyRollUp(), counts: null };

  constructor(query: ReportQuery) {
    this.#query = query;
  }

  /**
   * Adds the sums of a row that begins at `start`. `group`: the credential or metadata value of the
   * row.
   */
  add(
    { start, upstream, group }: { start: number; upstream: string; group: ReportGroup },
    sums: Readonly<RollUp>,
  ): void {
    addRollUp(this.#lineOf(start, upstream, group).sums, sums);
    addRollUp(this.total.sums, sums);
  }

  /** Adds the numbers of submissions of an upstream that met its objective and that did not. */
  addCounts(
    { start, upstream }: { start: number; upstream: string },
    counts: ObjectiveCounts,
  ): void {
    const line = this.#lineOf(start, upstream, { kind: 'none' });
    for (const one of [line, this.total])
      one.counts = {
        good: (one.counts?.good ?? 0) + counts.good,
        bad: (one.counts?.bad ?? 0) + counts.bad,
      };
  }

  /** Yields the lines by start and group. */
  *lines(): Generator<ReportLine, void> {
    for (const start of [...this.#lines.keys()].sort((a, b) => a - b))
      yield* [...(this.#lines.get(start)?.values() ?? [])].sort((a, b) =>
        compareGroups(a.group, b.group),
      );
  }

  #lineOf(rowStart: number, upstream: string, rowGroup: ReportGroup): ReportLine {
    const { interval, groupBy, from } = this.#query;
    const start = interval === 'total' ? from : rowStart;
    const byUpstream: ReportGroup =
      groupBy === 'upstream' ? { kind: 'value', value: upstream } : { kind: 'none' };
    const group = groupBy === 'upstream' || groupBy === 'none' ? byUpstream : rowGroup;
    const name = group.kind === 'value' ? `=${group.value}` : group.kind;
    const period = this.#lines.get(start) ?? new Map<string, ReportLine>();
    const line = period.get(name) ?? { start, group, sums: emptyRollUp(), counts: null };
    this.#lines.set(start, period.set(name, line));
    return line;
  }
}

const ORDER: Record<ReportGroup['kind'], number> = { value: 0, none: 1, other: 2 };

function compareGroups(a: ReportGroup, b: ReportGroup): number {
  if (a.kind !== 'value' || b.kind !== 'value') return ORDER[a.kind] - ORDER[b.kind];
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
