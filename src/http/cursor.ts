import { z } from 'zod';
import { SUBMISSION_ID_PATTERN } from '../domain/submission.ts';

/** Cursors are opaque to clients, so that what is in them can change. */
export function toCursor(position: number): string {
  return Buffer.from(`s1.${position}`).toString('base64url');
}

export const cursorSchema = z
  .string()
  .max(64)
  .refine((cursor) => fromCursor(cursor) !== undefined, 'is no cursor that this list gave')
  .describe('`next_cursor` of the page before')
  .meta({ examples: [toCursor(4_711)] });

export function fromCursor(cursor: string): number | undefined {
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const digits = /^s1\.([1-9]\d{0,14})$/.exec(text)?.[1];
  // Only the one spelling that we hand out: base64 has several for the same bytes.
  return digits && toCursor(Number(digits)) === cursor ? Number(digits) : undefined;
}

/** Of a list in the order of the ids: what is deleted between two pages must not lead it astray. */
export function toIdCursor(submissionId: string): string {
  return Buffer.from(`i1.${submissionId}`).toString('base64url');
}

export function fromIdCursor(cursor: string): string | undefined {
  const id = /^i1\.(.*)$/s.exec(Buffer.from(cursor, 'base64url').toString('latin1'))?.[1];
  return id !== undefined && SUBMISSION_ID_PATTERN.test(id) && toIdCursor(id) === cursor ? id : undefined;
}
