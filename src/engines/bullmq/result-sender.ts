import type { Clock } from '../../domain/clock.ts';
import type { Polled } from './poll-job.ts';

/** A response is sent so soon after it arrived: one request that hangs delays no other of its job. */
const FLUSH_MS = 50;
/** A batch is sent once it is so long: Redis keeps it in memory. One response may be longer. */
const MAX_BATCH_CHARS = 256 * 1024;

/** Sends the responses of one job in batches while the job runs. */
export class ResultSender {
  readonly #send: (batch: Polled[]) => Promise<void>;
  readonly #clock: Clock;
  #pending: Polled[] = [];
  #chars = 0;
  #isEnding = false;
  #cancelFlush: (() => void) | undefined;
  #sending: Promise<void> | undefined;

  constructor(deps: { send: (batch: Polled[]) => Promise<void>; clock: Clock }) {
    this.#send = deps.send;
    this.#clock = deps.clock;
  }

  add(polled: Polled): void {
    this.#pending.push(polled);
    this.#chars += lengthOf(polled);
    this.#schedule();
  }

  /** Returns what has not been sent, at most one batch unless sending fails. Nothing is added after that. */
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
    this.#cancelFlush = this.#clock.after(isFull ? 0 : FLUSH_MS, () => {
      this.#cancelFlush = undefined;
      if (this.#isEnding) return;
      this.#sending = this.#flush().then(() => {
        this.#sending = undefined;
        this.#schedule();
      });
    });
  }

  /** Whether the next batch was sent; one that was not is kept. */
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
      await this.#send(batch);
    } catch {
      // It may have arrived all the same: the server takes each id once.
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
