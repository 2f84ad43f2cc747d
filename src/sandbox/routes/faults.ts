import { z } from 'zod';

export const FAULT_KINDS = [
  'hang',
  'reset',
  'html_502',
  'html_503',
  'html_504',
  'empty_502',
  'throttle',
  'unauthorized',
  'database',
  'record_not_found',
  'truncated',
  'cut',
  'not_json',
  'empty_200',
  'drip',
  'endless',
  'huge',
  'redirect',
] as const;
type FaultKind = (typeof FAULT_KINDS)[number];

/** Which answers a fault replaces: those about submissions (the default), or those about users. */
const FAULT_TARGETS = ['submissions', 'users'] as const;
type FaultTarget = (typeof FAULT_TARGETS)[number];

export type FaultOrder = {
  kind: FaultKind | 'none';
  /** Answers to replace; without it every one until the order is replaced, by `none` or another kind. */
  count?: number | undefined;
  target?: FaultTarget | undefined;
  /** What a `throttle` asks for; 1 without it. Seconds of the client's clock. */
  retryAfterS?: number | undefined;
};
export type Fault = { kind: FaultKind; retryAfterS: number };

/** A fault order as POST /_sandbox/faults takes it. */
export const faultOrderSchema = z
  .object({
    kind: z.enum(['none', ...FAULT_KINDS]),
    count: z.int().positive().optional(),
    target: z.enum(FAULT_TARGETS).optional(),
    retry_after_s: z.number().min(0).optional(),
  })
  .transform(({ retry_after_s: retryAfterS, ...order }): FaultOrder => ({ ...order, retryAfterS }));

export type Faults = {
  /** Replaces what was ordered before for the same target. */
  inject(order: FaultOrder): void;
  /** The fault the next answer must be, used up by asking. */
  takeNext(target: FaultTarget): Fault | undefined;
};

export function createFaults(): Faults {
  const ordered = new Map<FaultTarget, { fault: Fault; left: number }>();

  return {
    inject({ kind, count = Number.POSITIVE_INFINITY, target = 'submissions', retryAfterS = 1 }) {
      if (kind === 'none') ordered.delete(target);
      else ordered.set(target, { fault: { kind, retryAfterS }, left: count });
    },
    takeNext(target) {
      const order = ordered.get(target);
      if (order === undefined) return undefined;
      order.left -= 1;
      if (order.left <= 0) ordered.delete(target);
      return order.fault;
    },
  };
}
