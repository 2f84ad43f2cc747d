type Options = {
  /** Limit of attempts in flight and failed together, per key. */
  max: number;
  windowMs: number;
  /** Limit of keys with failures; the one that failed longest ago is evicted. */
  maxKeys: number;
};

type EndAttempt = (failed: boolean) => void;

/**
 * Limits failed attempts per key in fixed windows. An attempt counts from its start, so that
 * concurrent attempts get no further than sequential ones, and is uncounted if it succeeds.
 * Attempts in flight count in every window.
 */
export class FailureBucket {
  readonly #options: Options;
  readonly #inFlight = new Map<string, number>();
  readonly #failed = new Map<string, { count: number; endsAt: number }>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Returns the milliseconds until another attempt is allowed; undefined if it is allowed now. */
  retryAfterMs(key: string): number | undefined {
    const failed = this.#failedOf(key);
    const inFlight = this.#inFlight.get(key) ?? 0;
    if (failed.count + inFlight < this.#options.max) return undefined;
    // An attempt in flight may succeed at any time.
    return inFlight > 0 ? 1_000 : failed.endsAt - Date.now();
  }

  /** Whether the key has no failure in this window and no attempt in flight. */
  isClean(key: string): boolean {
    return !this.#inFlight.has(key) && this.#failedOf(key).count === 0;
  }

  /** Starts an attempt. The returned function ends it; a second call does nothing. */
  begin(key: string): EndAttempt {
    this.#inFlight.set(key, (this.#inFlight.get(key) ?? 0) + 1);
    let isInFlight = true;
    return (hasFailed) => {
      if (!isInFlight) return;
      isInFlight = false;
      this.#end(key);
      if (hasFailed) this.#fail(key);
    };
  }

  #end(key: string): void {
    const left = (this.#inFlight.get(key) ?? 0) - 1;
    if (left > 0) this.#inFlight.set(key, left);
    else this.#inFlight.delete(key);
  }

  #fail(key: string): void {
    const { count, endsAt } = this.#failedOf(key);
    this.#failed.delete(key);
    this.#failed.set(key, { count: count + 1, endsAt });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > this.#options.maxKeys && oldest !== undefined)
      this.#failed.delete(oldest);
  }

  #failedOf(key: string): { count: number; endsAt: number } {
    const now = Date.now();
    const failed = this.#failed.get(key);
    return failed && failed.endsAt > now
      ? failed
      : { count: 0, endsAt: now + this.#options.windowMs };
  }
}
