import { type Delay, DelayCause, MAX_DELAYS } from '../submissions/delay.ts';
import { BreakerState, type UpstreamRecord } from '../submissions/upstream.ts';

/** Shown of one submission. */
const MAX_SHOWN = 20;
/** A delay that begins this soon after the previous one of its cause continues that one. */
const CONTINUES_MS = 10_000;

export const CAUSE_OF = {
  [BreakerState.down]: DelayCause.upstreamDown,
  [BreakerState.unauthorized]: DelayCause.keyRefused,
} as const;

/** The newest delays of one upstream, so that a submission can tell why it was late. */
export class DelayLog {
  /** In the order of their beginnings in this log. */
  readonly #all: Delay[] = [];
  readonly #newest = new Map<DelayCause, Delay>();
  /** Delays that the ledger does not have in this state. */
  readonly #unwritten = new Set<Delay>();

  /**
   * Continues with the delays of an earlier process, oldest first. Those that had not ended ended
   * with it, except the outage that continues, and the time in which the server does not run.
   */
  restore(
    delays: readonly Delay[],
    { state, pollingUntil }: Pick<UpstreamRecord, 'state' | 'pollingUntil'>,
    now: number,
  ): void {
    for (const delay of delays) this.#add({ ...delay });
    const outage = state === BreakerState.up ? undefined : CAUSE_OF[state];
    for (const cause of Object.values(DelayCause))
      if (cause !== outage && cause !== DelayCause.serverDown)
        this.end(cause, Math.min(pollingUntil ?? now, now));
  }

  /** `endedAt`: null while it lasts. A delay of this cause that lasts continues. */
  begin(cause: DelayCause, reason: string, given: Pick<Delay, 'beganAt' | 'endedAt'>): void {
    // Poll times have fractions, which the ledger does not store.
    const beganAt = Math.round(given.beganAt);
    const at = { beganAt, endedAt: given.endedAt && Math.round(given.endedAt) };
    const newest = this.#newest.get(cause);
    if (newest && (newest.endedAt ?? Number.POSITIVE_INFINITY) + CONTINUES_MS >= at.beganAt) {
      if (newest.endedAt === null && at.endedAt === null) return;
      newest.reason = reason;
      newest.endedAt = at.endedAt;
      this.#unwritten.add(newest);
    } else this.#unwritten.add(this.#add({ cause, reason, ...at }));
  }

  /** Returns the delay of this cause that lasts. */
  lasting(cause: DelayCause): Delay | undefined {
    const newest = this.#newest.get(cause);
    return newest?.endedAt === null ? newest : undefined;
  }

  /** Has no effect if no delay of this cause lasts. Returns the one that ended. */
  end(cause: DelayCause, at: number): Delay | undefined {
    const lasting = this.lasting(cause);
    if (!lasting) return undefined;
    lasting.endedAt = Math.max(at, lasting.beganAt);
    this.#unwritten.add(lasting);
    return lasting;
  }

  /** Returns the newest delays that overlap the time, oldest first. */
  overlapping(from: number, until: number): Delay[] {
    const found: Delay[] = [];
    for (let at = this.#all.length - 1; at >= 0 && found.length < MAX_SHOWN; at--) {
      const delay = this.#all[at] as Delay;
      if (delay.beganAt < until && (delay.endedAt ?? Number.POSITIVE_INFINITY) > from)
        found.push(delay);
    }
    return found.toSorted((one, other) => one.beganAt - other.beganAt);
  }

  /** Passes the unwritten delays to `store`, which may throw: then they stay unwritten. */
  write(store: (delays: readonly Delay[]) => void): void {
    if (this.#unwritten.size === 0) return;
    store([...this.#unwritten]);
    this.#unwritten.clear();
  }

  #add(delay: Delay): Delay {
    this.#all.push(delay);
    if (this.#all.length > MAX_DELAYS) this.#all.shift();
    this.#newest.set(delay.cause, delay);
    return delay;
  }
}
