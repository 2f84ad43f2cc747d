import { LedgerError } from '../ledger/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Alert } from '../notifications/alert.ts';
import { linkTo } from '../notifications/message.ts';
import type { AlertEventType } from '../submissions/event-types.ts';
import type { Alerts } from './alerts-store.ts';
import {
  type AlertCondition,
  type AlertThresholds,
  alertPath,
  conditionsOf,
  type LiveFacts,
  notWritable,
} from './rules.ts';

type AlertWatchDeps = {
  store: Alerts;
  clock: Clock;
  upstreams: readonly string[];
  thresholds: AlertThresholds;
  checkMs: number;
  redis: () => LiveFacts['redis'];
  isLedgerWritable: () => boolean;
  publicUrl: string | undefined;
  onReported: (reported: { type: AlertEventType; alert: Alert }) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Evaluates the alert rules every `checkMs`. Open alerts are stored in the ledger, so a restart
 * does not repeat them. That the ledger cannot be written is an alert in memory, which is recorded
 * and sent by the first check that can write.
 */
export class AlertWatch {
  readonly #deps: AlertWatchDeps;
  #cancel: (() => void) | undefined;
  /** Since when the ledger cannot be written, and no check has recorded that. */
  #unwritableSince: number | null = null;

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps;
  }

  /** The alert that is not in the ledger; undefined: there is none. */
  get unrecorded(): (AlertCondition & { since: number }) | undefined {
    return this.#unwritableSince === null ? undefined : notWritable(this.#unwritableSince);
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
    const { store, clock, upstreams, thresholds, publicUrl, onReported, onFailed } = this.#deps;
    const now = clock.now();
    if (!this.#deps.isLedgerWritable()) {
      this.#unwritableSince ??= now;
      return;
    }
    try {
      const live = { now, redis: this.#deps.redis(), unwritableSince: this.#unwritableSince };
      const conditions = conditionsOf({ ...store.facts(upstreams, now), ...live }, thresholds);
      const linkOf = (condition: AlertCondition) =>
        publicUrl && linkTo(publicUrl, alertPath(condition));
      for (const reported of store.reconcile(conditions, now, linkOf)) onReported(reported);
      this.#unwritableSince = null;
    } catch (error) {
      if (error instanceof LedgerError) this.#unwritableSince ??= now;
      onFailed(error);
    }
  }
}
