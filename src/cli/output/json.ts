import { escapeJson } from '../../domain/text.ts';

/** JSON for stdout, on one line unless indented. Valid and without loss, and nothing in it steers a terminal. */
export function toJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent));
}
