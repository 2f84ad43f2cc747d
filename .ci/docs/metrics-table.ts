import pkg from '../../package.json' with { type: 'json' };
import { createMetrics } from '../../src/wiring/metrics/metrics.ts';
import { withPart } from './between.ts';

/** Returns a list of the metric families of dawatch. Node's and the process's have known names. */
async function metricsTable(): Promise<string> {
  const families = await createMetrics({ version: pkg.version }).describe();
  const rows = families
    .filter(({ name }) => name.startsWith('dawatch_'))
    .toSorted((a, b) => a.name.localeCompare(b.name))
    .map(({ name, type, labels, help }) => {
      const notation = labels.length > 0 ? `${name}{${labels.join(',')}}` : name;
      return `- \`${notation}\` (${type}): ${help}`;
    });
  return rows.join('\n');
}

/** Returns the document with the generated table; throws if its markers are missing. */
export async function withTable(document: string): Promise<string> {
  return withPart(document, 'metrics', await metricsTable());
}
