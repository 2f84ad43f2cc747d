import pkg from '../../package.json' with { type: 'json' };
import { createMetrics } from '../../src/wiring/metrics/metrics.ts';
import { withPart } from './between.ts';

/** Returns a table of every metric family of /metrics. */
async function metricsTable(): Promise<string> {
  const families = await createMetrics({ version: pkg.version }).describe();
  const rows = families
    .toSorted((a, b) => orderOf(a.name).localeCompare(orderOf(b.name)))
    .map(
      ({ name, type, labels, help }) =>
        `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help} |`,
    );
  return ['| Name | Type | Labels | Meaning |', '|---|---|---|---|', ...rows].join('\n');
}

/** Sorts the families of dawatch before those of the process. */
function orderOf(name: string): string {
  return `${name.startsWith('dawatch_') ? 0 : 1}${name}`;
}

/** Returns the document with the generated table; throws if its markers are missing. */
export async function withTable(document: string): Promise<string> {
  return withPart(document, 'metrics', await metricsTable());
}
