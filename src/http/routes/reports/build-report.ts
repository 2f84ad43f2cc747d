import { setImmediate } from 'node:timers/promises';
import type { Objective, ObjectiveCounts } from '../../../domain/reports/objective.ts';
import { addRollUp, emptyRollUp, type ReportGroup, type RollUp } from '../../../domain/reports/roll-up.ts';
import type { Ledger } from '../../../ledger/ledger.ts';
import { metadataDimension, REPORT_UNITS, type ReportKey } from '../../../ledger/stats/report-rows.ts';
import type { ReportQuery } from './report-query.ts';

/** Days that are read in one turn of the event loop: at most 300 rows per upstream, or some 20 ms. */
const DAYS_PER_TURN = { upstream: 400, others: 3 };

/** `counts`: null where they are not known: without an objective, and for groups other than upstreams. */
export type ReportLine = { start: number; group: ReportGroup; sums: RollUp; counts: ObjectiveCounts | null };
export type Report = { lines: ReportLine[]; total: Omit<ReportLine, 'start' | 'group'> };

/** Reads the rows of a report and adds up those of the same period and group. Other work runs between two parts. */
export async function buildReport(
  ledger: Ledger,
  query: ReportQuery,
  settings: { metadataKey: string | null; objectives: ReadonlyMap<string, Objective> },
): Promise<Report> {
  const lines = new Map<string, ReportLine>();
  const lineOf = (start: number, group: ReportGroup): ReportLine => {
    const name = JSON.stringify([start, group]);
    const line = lines.get(name) ?? { start, group, sums: emptyRollUp(), counts: null };
    lines.set(name, line);
    return line;
  };
  const { from, until, interval, groupBy, upstream } = query;
  const isByUpstream = groupBy === 'upstream' || groupBy === 'none';
  const dimension = isByUpstream
    ? 'upstream'
    : groupBy === 'credential'
      ? groupBy
      : metadataDimension(settings.metadataKey ?? '');
  const unit = interval === 'hour' ? 'hour' : 'day';
  const startOf = (start: number) => (interval === 'total' ? from : start);
  const stepMs = DAYS_PER_TURN[isByUpstream ? 'upstream' : 'others'] * REPORT_UNITS.day;
  for (let begin = from; begin < until; begin += stepMs) {
    const part = { unit, dimension, from: begin, until: Math.min(until, begin + stepMs), upstream } as const;
    for (const { key, sums } of ledger.reports.rows.read(part))
      addRollUp(lineOf(startOf(key.start), groupOf(key, groupBy)).sums, sums);
    await setImmediate();
  }
  if (isByUpstream)
    for (const name of upstream === undefined ? settings.objectives.keys() : [upstream]) {
      if (!settings.objectives.has(name)) continue;
      for (const { start, good, bad } of ledger.objectives.byPeriod({
        upstream: name,
        from,
        until,
        unitMs: REPORT_UNITS[unit],
      })) {
        const group = groupOf({ upstream: name, group: { kind: 'none' } }, groupBy);
        const line = lineOf(startOf(start), group);
        line.counts = addCounts(line.counts, { good, bad });
      }
    }
  const sorted = [...lines.values()].sort((a, b) => a.start - b.start || compareGroups(a.group, b.group));
  const total: Report['total'] = { sums: emptyRollUp(), counts: null };
  await inTurns(sorted, ({ sums, counts }) => {
    addRollUp(total.sums, sums);
    if (counts) total.counts = addCounts(total.counts, counts);
  });
  return { lines: sorted, total };
}

/** A report of all days may have 40,000 lines per upstream. */
const LINES_PER_TURN = 250;

/** Returns the results of `map` in the order of the items. Other work runs after every 250 of them. */
export async function inTurns<Item, Result>(items: readonly Item[], map: (item: Item) => Result): Promise<Result[]> {
  const results: Result[] = [];
  for (const item of items) {
    results.push(map(item));
    if (results.length % LINES_PER_TURN === 0) await setImmediate();
  }
  return results;
}

function groupOf(
  { upstream, group }: Pick<ReportKey, 'upstream' | 'group'>,
  groupBy: ReportQuery['groupBy'],
): ReportGroup {
  if (groupBy === 'none') return { kind: 'none' };
  return groupBy === 'upstream' ? { kind: 'value', value: upstream } : group;
}

function addCounts(sum: ObjectiveCounts | null, { good, bad }: ObjectiveCounts): ObjectiveCounts {
  return { good: (sum?.good ?? 0) + good, bad: (sum?.bad ?? 0) + bad };
}

const ORDER: Record<ReportGroup['kind'], number> = { value: 0, none: 1, other: 2 };

function compareGroups(a: ReportGroup, b: ReportGroup): number {
  if (a.kind !== 'value' || b.kind !== 'value') return ORDER[a.kind] - ORDER[b.kind];
  return a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
}
