import {
  LOG_EVENTS,
  LOG_FIELDS,
  type LogEvent,
} from '../../src/operations/logging/event-catalog.ts';
import { withPart } from './between.ts';

const TABLES = { events: eventTable, fields: fieldTable };

/** Returns the document with its tables generated from the catalog, each between its markers. */
export function withLogTables(markdown: string): string {
  return Object.entries(TABLES).reduce(
    (text, [name, table]) => withPart(text, name, `\n${table()}\n`),
    markdown,
  );
}

function eventTable(): string {
  const rows = Object.entries<LogEvent>(LOG_EVENTS).map(
    ([name, { levels, when, fields, advice = '–' }]) => {
      const shown = fields.map((field) => `\`${field}\``).join(', ') || '–';
      return [`\`${name}\``, levels.join(', '), when, shown, advice];
    },
  );
  return toMarkdown([['event', 'level', 'written when', 'fields', 'what to do'], ...rows]);
}

function fieldTable(): string {
  const rows = Object.entries(LOG_FIELDS).map(([name, meaning]) => [`\`${name}\``, meaning]);
  return toMarkdown([['field', 'meaning'], ...rows]);
}

function toMarkdown([head = [], ...rows]: string[][]): string {
  const line = (cells: string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}
