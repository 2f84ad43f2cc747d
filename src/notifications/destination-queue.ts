import type { Due } from '../lib/due-queue.ts';

/**
 * proven: the latest attempt was delivered. unproven: it failed, or there was none. Callbacks have
 * priorities of their own, because clients supply their URLs.
 */
export const PRIORITIES = ['proven', 'unproven', 'proven_callback', 'callback'] as const;
export type DestinationPriority = (typeof PRIORITIES)[number];

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

/**
 * Concurrency and pauses of one destination. The deliveries themselves are in the ledger.
 *
 * The concurrency limit starts at 1, doubles with each delivered attempt up to the configured
 * limit, and returns to 1 on a failure. A refusal of one delivery (such as 400) does not change it.
 * After 429, 502, 503 or 504 the destination is paused for its Retry-After, or else for 1, 2, 4 …
 * 60 s.
 */
export class DestinationQueue implements Due {
  readonly destination: string;
  /**
   * Time of the next attempt in epoch milliseconds. The dispatcher's schedule sorts by it and
   * maintains `heapIndex`.
   */
  dueAt = 0;
  heapIndex = 0;
  /** Ids of deliveries in an attempt, or with a result that is not committed yet. */
  readonly inFlight = new Set<number>();
  readonly #maxAttempts: number;
  #attempts = 0;
  #limit = 1;
  #consecutivePauses = 0;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #isProven = false;

  constructor(destination: string, concurrency: number) {
    this.destination = destination;
    this.#maxAttempts = concurrency;
  }

  get priority(): DestinationPriority {
    if (this.destination.startsWith('callback:'))
      return this.#isProven ? 'proven_callback' : 'callback';
    return this.#isProven ? 'proven' : 'unproven';
  }

  get isProven(): boolean {
    return this.#isProven;
  }

  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /**
   * How many more attempts may start. Negative after a failure while other attempts are in flight.
   */
  get available(): number {
    return this.#limit - this.#attempts;
  }

  started(deliveryIds: readonly number[]): void {
    this.#attempts += 1;
    for (const id of deliveryIds) this.inFlight.add(id);
  }

  succeeded(): void {
    this.#attempts -= 1;
    this.#limit = Math.min(this.#limit * 2, this.#maxAttempts);
    this.#consecutivePauses = 0;
    this.#isProven = true;
  }

  /** `slowDown`: the receiver requested a lower rate, with an optional Retry-After. */
  failed(now: number, slowDown: { retryAfterMs: number | null } | undefined): void {
    this.#attempts -= 1;
    this.#limit = 1;
    this.#isProven = false;
    if (!slowDown) return;
    const pauseMs =
      slowDown.retryAfterMs ??
      Math.min(FIRST_PAUSE_MS * 2 ** this.#consecutivePauses, MAX_PAUSE_MS);
    this.#consecutivePauses += 1;
    this.#pausedUntil = Math.max(this.#pausedUntil, now + pauseMs);
  }

  /** The attempt was aborted, or only its own event was refused. */
  inconclusive(): void {
    this.#attempts -= 1;
  }
}
