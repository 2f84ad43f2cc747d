import { z } from 'zod';
import { shownOf } from '../domain/explain-issue.ts';

/** A whole number within bounds, from the text of a query. Not what Number() takes: "1e3", "0x10" and " 7 " are wrong. */
export const wholeNumber = ({ min, max }: { min: number; max: number }) => {
  const error = ({ input }: { input?: unknown }) => `must be a whole number from ${min} to ${max}${shownOf(input)}`;
  return z
    .string()
    .regex(/^\d{1,6}$/, { error, abort: true })
    .refine((text) => Number(text) >= min && Number(text) <= max, { error })
    .describe(`A whole number from ${min} to ${max}`);
};
