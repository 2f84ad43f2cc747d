import type { Clock } from '../../domain/clock.ts';
import type { Alert } from '../../domain/notifications/alert.ts';
import type { AlertEventType } from '../../domain/notifications/events.ts';
import type { AlertStore } from '../ports.ts';
import { type AlertThresholds, conditionsOf } from './alert-rules.ts';

/** So long a dead letter is news. */
const DEAD_WINDOW_MS = 86_400_000;
/** What waits for less is on its way: a cohort of thousands takes its time. */
const WAITING_MS = 60_000;

type AlertWatchDeps = {
  store: AlertStore;
  clock: Clock;
  /** The configured ones. */
  upstreams: readonly string[];
  thresholds: AlertThresholds;
  checkMs: number;
  remindAfterMs: number;
  onReported: (told: { type: AlertEventType; alert: Alert }) => void;
  onFailed: (error: unknown) => void;
};

/** Looks again and again at what alerts are about. What was told is in the ledger, so a restart tells nothing twice. */
export class AlertWatch {
  readonly #deps: AlertWatchDeps;
  #cancel: (() => void) | undefined;

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { clock, checkMs } = this.#deps;
    this.#cancel = clock.after(checkMs, () => {
      this.#check();
      this.start();
    });
  }

  stop(): void {
    this.#cancel?.();
  }

  #check(): void {
    const { store, clock, upstreams, thresholds, remindAfterMs, onReported, onFailed } = this.#deps;
    const now = clock.now();
    try {
      const facts = store.facts({
        upstreams,
        failuresSince: now - thresholds.failuresWindowMs,
        deadSince: now - DEAD_WINDOW_MS,
        waitingBefore: now - WAITING_MS,
      });
      for (const told of store.reconcile(conditionsOf(facts, thresholds), { now, remindAfterMs })) onReported(told);
    } catch (error) {
      onFailed(error);
    }
  }
}
