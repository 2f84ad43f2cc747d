import type { Due } from '../../pacing/due-queue.ts';

/**
 * proven: its newest attempt was delivered. unproven: it failed, or there was none yet. Callbacks are apart: any client may bring
 * their addresses, and any number of them.
 */
export type DestinationPriority = 'proven' | 'unproven' | 'proven_callback' | 'callback';

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/**
 * How fast one destination is sent to; what is waiting for it is in the ledger.
 *
 * It begins with one attempt at a time. Each delivered one doubles that, up to the limit; each that fails sets it back to one,
 * except a refusal of that delivery alone (400, say), which changes nothing. A destination that asks for less (429, 502, 503,
 * 504) is left alone for as long as it says, else for 1, 2, 4 … 60 s.
 */
export class DestinationQueue implements Due {
  readonly destination: string;
  /** Of the queue that it waits in for its time; it is in there only while `isQueued`. */
  dueAt = 0;
  place = 0;
  isScheduled = false;
  /** Where it waits for its turn; null: it does not. */
  readyAs: DestinationPriority | null = null;
  /** Numbers of the deliveries that are under way, or whose result is not on the disk yet. */
  readonly inFlight = new Set<number>();
  readonly #maxWindow: number;
  #attempts = 0;
  #window = 1;
  #slowDowns = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #isProven = false;

  constructor(destination: string, concurrency: number) {
    this.destination = destination;
    this.#maxWindow = concurrency;
  }

  get priority(): DestinationPriority {
    if (this.destination.startsWith('callback:')) return this.#isProven ? 'proven_callback' : 'callback';
    return this.#isProven ? 'proven' : 'unproven';
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** For so many attempts more; less than none after one that failed beside others. */
  get available(): number {
    return this.#window - this.#attempts;
  }

  get isIdle(): boolean {
    return this.inFlight.size === 0 && !this.isScheduled && this.readyAs === null;
  }

  started(deliveryIds: readonly number[]): void {
    this.#attempts += 1;
    for (const id of deliveryIds) this.inFlight.add(id);
  }

  succeeded(): void {
    this.#attempts -= 1;
    this.#window = Math.min(this.#window * 2, this.#maxWindow);
    this.#slowDowns = 0;
    this.#isProven = true;
  }

  /** `slowDown`: it asked for less, maybe for so long. */
  failed(now: number, slowDown: { retryAfterMs: number | null } | undefined): void {
    this.#attempts -= 1;
    this.#window = 1;
    this.#isProven = false;
    if (!slowDown) return;
    const pauseMs = slowDown.retryAfterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** this.#slowDowns, MAX_PAUSE_MS);
    this.#slowDowns += 1;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
  }

  /** An attempt that says nothing about the destination: it was called off, or only its own event was refused. */
  inconclusive(): void {
    this.#attempts -= 1;
  }
}
