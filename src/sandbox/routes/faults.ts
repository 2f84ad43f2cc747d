import type { Fault } from './fault-responses.ts';

/** Which responses a fault replaces: those about submissions (default) or users. */
type FaultTarget = 'submissions' | 'users';

export type FaultOrder = {
  kind: Fault['kind'] | 'none';
  /** Number of responses to replace; by default all until the next order for the target. */
  count?: number | undefined;
  target?: FaultTarget | undefined;
  /** Retry-After of a `throttle` in seconds of the client's clock; default 1. */
  retryAfterS?: number | undefined;
};

export type Faults = ReturnType<typeof createFaults>;

export function createFaults() {
  const ordered = new Map<FaultTarget, { fault: Fault; left: number }>();

  return {
    /** Replaces the previous order for the same target. */
    inject({
      kind,
      count = Number.POSITIVE_INFINITY,
      target = 'submissions',
      retryAfterS = 1,
    }: FaultOrder): void {
      if (kind === 'none') ordered.delete(target);
      else ordered.set(target, { fault: { kind, retryAfterS }, left: count });
    },
    /** Returns and consumes the fault of the next response. */
    takeNext(target: FaultTarget): Fault | undefined {
      const order = ordered.get(target);
      if (order === undefined) return undefined;
      order.left -= 1;
      if (order.left <= 0) ordered.delete(target);
      return order.fault;
    },
  };
}
