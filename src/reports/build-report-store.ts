import type { Objective } from '../submissions/objective.ts';
import type { ObjectiveSlices } from './objective-slices-store.ts';
import { type ReportQuery, ReportTable } from './report.ts';
import { metadataDimension, REPORT_UNITS, type ReportRows } from './report-rows-store.ts';

/**
 * Days that one step reads: at most 300 rows per upstream, or 5,000 slices of objectives, some 20
 * ms.
 */
const DAYS_PER_STEP = { upstream: 400, groups: 3, objectives: 18 };

/**
 * Reads the rows of a report and adds up those of the same period and group, in steps of some
 * milliseconds.
 */
export function* buildReport(
  { reports, objectives }: { reports: { rows: ReportRows }; objectives: ObjectiveSlices },
  query: ReportQuery,
  settings: { metadataKey: string | null; objectives: ReadonlyMap<string, Objective> },
): Generator<void, ReportTable> {
  const table = new ReportTable(query);
  const { groupBy, upstream } = query;
  const isByUpstream = groupBy === 'upstream' || groupBy === 'none';
  const unit = query.interval === 'hour' ? 'hour' : 'day';
  const byGroup =
    groupBy === 'credential' ? groupBy : metadataDimension(settings.metadataKey ?? '');
  const dimension = isByUpstream ? 'upstream' : byGroup;
  for (const part of partsOf(query, isByUpstream ? DAYS_PER_STEP.upstream : DAYS_PER_STEP.groups)) {
    for (const { key, sums } of reports.rows.read({ unit, dimension, ...part, upstream }))
      table.add(key, sums);
    yield;
  }
  const withObjective = [...settings.objectives.keys()].filter(
    (name) => upstream === undefined || name === upstream,
  );
  for (const name of isByUpstream ? withObjective : [])
    for (const part of partsOf(query, DAYS_PER_STEP.objectives)) {
      const counted = objectives.byPeriod({ upstream: name, ...part, unitMs: REPORT_UNITS[unit] });
      for (const { start, good, bad } of counted)
        table.addCounts({ start, upstream: name }, { good, bad });
      yield;
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
