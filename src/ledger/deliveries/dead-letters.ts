import type { DeadReason } from '../../domain/notifications/delivery.ts';
import type { LedgerDatabase } from '../file/ledger-database.ts';

/** So many deliveries to one destination were given up; to any of the callbacks where it is `callback:` alone. */
export type DeadLetters = { destination: string; reason: DeadReason; count: number };

/** Tells what became dead letters, once that is committed. */
export class DeadLetterListeners {
  readonly #listeners: ((dead: DeadLetters) => void)[] = [];
  #news: DeadLetters[] = [];

  constructor(transactions: LedgerDatabase) {
    transactions.onEnd((committed) => {
      const news = this.#news;
      this.#news = [];
      if (committed) for (const dead of news) for (const listener of this.#listeners) listener(dead);
    });
  }

  /** Inside a transaction. */
  add(destination: string, reason: DeadReason, count: number): void {
    if (count > 0) this.#news.push({ destination, reason, count });
  }

  onCommitted(listener: (dead: DeadLetters) => void): void {
    this.#listeners.push(listener);
  }
}
