import { LOG_EVENTS } from '../../src/operations/logging/event-catalog.ts';
import { withPart } from './between.ts';

/** Returns the document with the table of log events between its markers. */
export function withLogTable(markdown: string): string {
  const rows = Object.entries(LOG_EVENTS).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`);
  const table = ['| event | a line says |', '| --- | --- |', ...rows].join('\n');
  return withPart(markdown, 'events', `\n${table}\n`);
}
