type Options = {
  /** At most so many under way and failed, together, by one key. */
  max: number;
  windowMs: number;
  /** Keys with failures kept; past it the one that failed longest ago is forgotten. */
  maxKeys: number;
};

type EndAttempt = (failed: boolean) => void;

/**
 * Counts attempts before they are made, and gives back those that did not fail: many at once get no further than one after
 * the other. Failures are counted in fixed windows; what is under way counts whatever the window.
 */
export class FailureBucket {
  readonly #options: Options;
  /** As many as there are requests under way, at most. */
  readonly #underWay = new Map<string, number>();
  readonly #failed = new Map<string, { count: number; endsAt: number }>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Milliseconds until another attempt may be made; undefined: now. */
  retryAfterMs(key: string): number | undefined {
    const failed = this.#failedOf(key);
    const underWay = this.#underWay.get(key) ?? 0;
    if (failed.count + underWay < this.#options.max) return undefined;
    // What is under way may be given back at any time.
    return underWay > 0 ? 1_000 : failed.endsAt - Date.now();
  }

  /** Whether nothing of this key failed in this window or is under way. */
  isClean(key: string): boolean {
    return !this.#underWay.has(key) && this.#failedOf(key).count === 0;
  }

  /** Counts an attempt as under way until the returned function is called; a second call does nothing. */
  begin(key: string): EndAttempt {
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
    let isUnderWay = true;
    return (hasFailed) => {
      if (!isUnderWay) return;
      isUnderWay = false;
      this.#end(key);
      if (hasFailed) this.#fail(key);
    };
  }

  #end(key: string): void {
    const left = (this.#underWay.get(key) ?? 0) - 1;
    if (left > 0) this.#underWay.set(key, left);
    else this.#underWay.delete(key);
  }

  #fail(key: string): void {
    const { count, endsAt } = this.#failedOf(key);
    this.#failed.delete(key);
    this.#failed.set(key, { count: count + 1, endsAt });
    const [oldest] = this.#failed.keys();
    if (this.#failed.size > this.#options.maxKeys && oldest !== undefined) this.#failed.delete(oldest);
  }

  #failedOf(key: string): { count: number; endsAt: number } {
    const now = Date.now();
    const failed = this.#failed.get(key);
    return failed && failed.endsAt > now ? failed : { count: 0, endsAt: now + this.#options.windowMs };
  }
}
