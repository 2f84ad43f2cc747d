import { escapeJson } from '../lib/text.ts';

/** Returns JSON for stdout with control characters escaped, on one line unless indented. */
export function toJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent));
}
