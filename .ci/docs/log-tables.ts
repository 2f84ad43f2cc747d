import { LOG_EVENTS } from '../../src/operations/logging/event-catalog.ts';
import { withPart } from './between.ts';

/** Returns the document with the list of log events between its markers. */
export function withLogTable(markdown: string): string {
  const items = Object.entries(LOG_EVENTS).map(([name, meaning]) => `- \`${name}\`: ${meaning}`);
  return withPart(markdown, 'events', `\n${items.join('\n')}\n`);
}
