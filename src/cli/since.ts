import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseDuration } from './duration.ts';

const timeSchema = z.iso.datetime({ offset: true });

/** Returns an ISO 8601 time for a duration such as "2h" (ago) or for a time with its zone. */
export function parseSince(text: string): string {
  if (timeSchema.safeParse(text).success) return text;
  if (/^\d+(\.\d+)?[a-z]+$/.test(text))
    return new Date(Date.now() - parseDuration(text)).toISOString();
  throw new InvalidArgumentError(
    'Expected a duration like 2h, or a time like 2026-01-02T03:04:05Z.',
  );
}

/**
 * Parses an end time: "2h" after a start, or a fixed time with its zone. Returns a function that
 * computes the end from the start, both in epoch milliseconds.
 */
export function parseAhead(text: string): (start: number) => number {
  if (timeSchema.safeParse(text).success) return () => Date.parse(text);
  if (!/^\d+(\.\d+)?[a-z]+$/.test(text))
    throw new InvalidArgumentError(
      'Expected a duration like 2h, or a time like 2026-01-02T03:04:05Z.',
    );
  const durationMs = parseDuration(text);
  return (start) => start + durationMs;
}
