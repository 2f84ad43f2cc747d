/** Formats epoch milliseconds as ISO 8601 in UTC. Throws RangeError. */
export function iso(ms: number): string {
  return new Date(ms).toISOString();
}
