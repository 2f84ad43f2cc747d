import pkg from '../package.json' with { type: 'json' };
import { createMetrics } from '../src/http/metrics/metrics.ts';

/** Every family of /metrics. */
function metricsTable(): string {
  const rows = createMetrics({ version: pkg.version })
    .describe()
    .toSorted((a, b) => orderOf(a.name).localeCompare(orderOf(b.name)))
    .map(({ name, type, labels, help }) => `| \`${name}\` | ${type} | ${labels.join(', ')} | ${help} |`);
  return ['| Name | Type | Labels | Meaning |', '|---|---|---|---|', ...rows].join('\n');
}

/** Our own come first. */
function orderOf(name: string): string {
  return `${name.startsWith('dawatch_') ? 0 : 1}${name}`;
}

const BEGIN = '<!-- npm run docs:metrics writes from here -->';
const END = '<!-- to here -->';

/** The document with the table as it is now. */
export function withTable(document: string): string {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error('the document has no place for the table');
  return `${document.slice(0, begin)}${BEGIN}\n${metricsTable()}\n${document.slice(end)}`;
}
