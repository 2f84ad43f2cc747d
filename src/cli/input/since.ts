import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { parseDuration } from './duration.ts';

const timeSchema = z.iso.datetime({ offset: true });

/** "2h" (so long ago) or a time in ISO 8601 with its zone, as the server takes it. */
export function parseSince(text: string): string {
  if (timeSchema.safeParse(text).success) return text;
  if (/^\d+(\.\d+)?[a-z]+$/.test(text)) return new Date(Date.now() - parseDuration(text)).toISOString();
  throw new InvalidArgumentError('Expected a duration like 2h, or a time like 2026-01-02T03:04:05Z.');
}
