import type { Clock } from '../../domain/clock.ts';
import type { Polled } from './poll-job.ts';

/** Responses are sent at most this late, so that a slow request does not delay the others of its job. */
const FLUSH_MS = 50;
/** Maximum size of a batch, which Redis keeps in memory. A single response may be longer. */
const MAX_BATCH_CHARS = 256 * 1024;

/** Sends the responses of one job in batches while the job runs. */
export class ResultSender {
  readonly #deps: { send: (batch: Polled[]) => Promise<void>; clock: Clock };
  #pending: Polled[] = [];
  #chars = 0;
  #isEnding = false;
  #cancelFlush: (() => void) | undefined;
  #sending: Promise<void> | undefined;

  constructor(deps: { send: (batch: Polled[]) => Promise<void>; clock: Clock }) {
    this.#deps = deps;
  }

  add(polled: Polled): void {
    this.#pending.push(polled);
    this.#chars += lengthOf(polled);
    this.#schedule();
  }

  /** Returns the unsent responses: at most one batch unless sending fails. No responses may be added afterwards. */
  async end(): Promise<Polled[]> {
    this.#isEnding = true;
    this.#cancelFlush?.();
    await this.#sending;
    while (this.#chars > MAX_BATCH_CHARS && this.#pending.length > 1) if (!(await this.#flush())) break;
    return this.#pending;
  }

  #schedule(): void {
    if (this.#isEnding || this.#sending || this.#pending.length === 0) return;
    const isFull = this.#chars > MAX_BATCH_CHARS;
    if (isFull) this.#cancelFlush?.();
    else if (this.#cancelFlush) return;
    this.#cancelFlush = this.#deps.clock.after(isFull ? 0 : FLUSH_MS, () => {
      this.#cancelFlush = undefined;
      if (this.#isEnding) return;
      this.#sending = this.#flush().then(() => {
        this.#sending = undefined;
        this.#schedule();
      });
    });
  }

  /** Returns whether the next batch was sent; otherwise it is kept. */
  async #flush(): Promise<boolean> {
    let chars = 0;
    let count = 0;
    for (const polled of this.#pending) {
      if (count > 0 && chars + lengthOf(polled) > MAX_BATCH_CHARS) break;
      chars += lengthOf(polled);
      count += 1;
    }
    const batch = this.#pending.slice(0, count);
    try {
      await this.#deps.send(batch);
    } catch {
      // It may have arrived nevertheless: the server accepts each id once.
      return false;
    }
    this.#pending.splice(0, count);
    this.#chars -= chars;
    return true;
  }
}

function lengthOf({ response }: Polled): number {
  return response.kind === 'response' ? response.body.length : response.detail.length;
}
