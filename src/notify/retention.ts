import type { Clock } from '../monitor/ports.ts';
import type { DeliveryStore } from './ports.ts';

const LOOK_MS = 60_000;
/** One short transaction; everything else has its turn before the next one. */
const SLICE = 500;

type RetentionDeps = { store: DeliveryStore; clock: Clock; keepMs: number; onFailed: (error: unknown) => void };

/** Deletes deliveries that ended longer ago than they are kept for. */
export class Retention {
  readonly #deps: RetentionDeps;
  #cancel: (() => void) | undefined;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#look(LOOK_MS);
  }

  stop(): void {
    this.#cancel?.();
  }

  #look(delayMs: number): void {
    const { store, clock, keepMs, onFailed } = this.#deps;
    this.#cancel = clock.after(delayMs, () => {
      let deleted = 0;
      try {
        deleted = store.prune(clock.now() - keepMs, SLICE);
      } catch (error) {
        onFailed(error);
      }
      this.#look(deleted === SLICE ? 0 : LOOK_MS);
    });
  }
}
