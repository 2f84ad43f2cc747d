import { z } from 'zod';

/** A whole number within bounds, from the text of a query. Not what Number() takes: "1e3", "0x10" and " 7 " are wrong. */
export const wholeNumber = ({ min, max }: { min: number; max: number }) =>
  z
    .string()
    .regex(/^\d{1,6}$/, { error: `a whole number from ${min} to ${max}`, abort: true })
    .refine((text) => Number(text) >= min && Number(text) <= max, `from ${min} to ${max}`)
    .describe(`A whole number from ${min} to ${max}`);
