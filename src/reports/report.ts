import { setImmediate } from 'node:timers/promises';
import type { ObjectiveCounts } from '../submissions/objective.ts';
import { metadataDimension, REPORT_UNITS, type Reports } from './reports-store.ts';
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

/**
 * Days that are read in one turn of the event loop: at most 300 rows per upstream, or 5,000 slices
 * of objectives, some 20 ms.
 */
const DAYS_PER_TURN = { upstream: 400, groups: 3, objectives: 18 };

/** Reads the rows of a report, and adds up those of the same period and group. */
export async function buildReport(
  { rows, objectives, settings }: Reports,
  query: ReportQuery,
): Promise<ReportTable> {
  const table = new ReportTable(query);
  const { groupBy, upstream } = query;
  const isByUpstream = groupBy === 'upstream' || groupBy === 'none';
  const unit = query.interval === 'hour' ? 'hour' : 'day';
  const byGroup =
    groupBy === 'credential' ? groupBy : metadataDimension(settings.metadataKey ?? '');
  const dimension = isByUpstream ? 'upstream' : byGroup;
  for (const part of partsOf(query, isByUpstream ? DAYS_PER_TURN.upstream : DAYS_PER_TURN.groups)) {
    for (const { key, sums } of rows.read({ unit, dimension, ...part, upstream }))
      table.add(key, sums);
    await setImmediate();
  }
  if (!isByUpstream) return table;
  for (const name of settings.objectives.keys()) {
    if (upstream !== undefined && name !== upstream) continue;
    for (const part of partsOf(query, DAYS_PER_TURN.objectives)) {
      const counted = objectives.byPeriod({ upstream: name, ...part, unitMs: REPORT_UNITS[unit] });
      for (const { start, ...counts } of counted)
        table.addCounts({ start, upstream: name }, counts);
      await setImmediate();
    }
  }
  return table;
}

function* partsOf(
  { from, until }: ReportQuery,
  days: number,
): Generator<{ from: number; until: number }, void> {
  const stepMs = days * REPORT_UNITS.day;
  for (let begin = from; begin < until; begin += stepMs)
    yield { from: begin, until: Math.min(until, begin + stepMs) };
}

const ORDER: Record<ReportGroup['kind'], number> = { value: 0, none: 1, other: 2 };

function compareGroups(a: ReportGroup, b: ReportGroup): number {
  if (a.kind !== 'value' || b.kind !== 'value') return ORDER[a.kind] - ORDER[b.kind];
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
