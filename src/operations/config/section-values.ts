import { z } from 'zod';
import { serviceAddressError } from '../../lib/addresses.ts';

const MAX_COUNT = 1_000_000_000;

/** A part of the settings in which every setting has a default. */
export function section<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.strictObject(shape).prefault({} as never);
}

/** A duration in seconds, fractions included, up to 366 days. */
export function seconds(fallback: number, minimum = 0) {
  return z
    .number()
    .min(minimum)
    .max(366 * 86_400)
    .default(fallback);
}

/** A duration in days, fractions included, up to 100 years; 0 by default. */
export const days = z.number().min(0).max(36_600).default(0);

export function count(fallback: number, minimum: number, maximum = MAX_COUNT) {
  return z.number().int().min(minimum).max(maximum).default(fallback);
}

/** A text that `problemOf` accepts by returning undefined; otherwise it returns the message. */
export function checked(problemOf: (text: string) => string | undefined) {
  return z.string().superRefine((text, context) => {
    const message = problemOf(text);
    if (message !== undefined) context.addIssue({ code: 'custom', message, continue: false });
  });
}

/** The address of a service, with a host, such as address('redis', 'rediss'). */
export function address(...schemes: string[]) {
  return checked((text) => serviceAddressError(text, schemes));
}

/** An address without path and query. */
export function hostUrl(...schemes: string[]) {
  return address(...schemes).refine(
    (text) => /^[a-z]+:\/\/[^/?]+\/?$/i.test(text),
    'must be an address that ends with its host or port',
  );
}

export const httpUrl = address('http', 'https');
/** An address to which paths are appended, shown to everybody. */
export const baseUrl = httpUrl.refine(
  (text) => !/[?@]/.test(text),
  'must be an address without user and query',
);

/** Settings by names chosen by the operator. */
export function recordByName<Value extends z.ZodType>(value: Value) {
  const name = z
    .string()
    .regex(
      /^[a-z0-9][a-z0-9_-]{0,31}$/,
      'must be a name of at most 32 characters out of a-z, 0-9, - and _',
    );
  return z.record(name, value);
}
