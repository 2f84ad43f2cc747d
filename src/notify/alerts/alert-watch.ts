import type { Clock } from '../../domain/clock.ts';
import type { Alert } from '../../domain/notifications/alert.ts';
import { alertPath, linkTo } from '../../domain/notifications/dashboard-links.ts';
import type { AlertEventType } from '../../domain/notifications/events.ts';
import type { Objective } from '../../domain/reports/objective.ts';
import type { Alerts } from '../../ledger/deliveries/alerts.ts';
import { type AlertThresholds, conditionsOf } from './alert-rules.ts';

/** Dead letters older than this raise no alert. */
const DEAD_WINDOW_MS = 86_400_000;
/** Deliveries that wait for less do not count as a backlog: thousands of events at once take some time. */
const WAITING_MS = 60_000;

type AlertWatchDeps = {
  store: Pick<Alerts, 'facts' | 'reconcile'>;
  clock: Clock;
  /** Names of the configured upstreams. */
  upstreams: readonly string[];
  /** By upstream. */
  objectives: ReadonlyMap<string, Objective>;
  thresholds: AlertThresholds;
  checkMs: number;
  remindAfterMs: number;
  /** The setting `server.public_url`. */
  publicUrl: () => string | undefined;
  onReported: (reported: { type: AlertEventType; alert: Alert }) => void;
  onFailed: (error: unknown) => void;
};

/** Evaluates the alert rules every `checkMs`. Open alerts are stored in the ledger, so a restart does not repeat them. */
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
    const { store, clock, upstreams, objectives, thresholds, remindAfterMs, onReported, onFailed } = this.#deps;
    const now = clock.now();
    const publicUrl = this.#deps.publicUrl();
    try {
      const facts = store.facts({
        upstreams,
        objectives,
        now,
        failuresSince: now - thresholds.failuresWindowMs,
        deadSince: now - DEAD_WINDOW_MS,
        waitingBefore: now - WAITING_MS,
      });
      const linkOf = (alert: Pick<Alert, 'rule' | 'subject'>) => publicUrl && linkTo(publicUrl, alertPath(alert));
      for (const reported of store.reconcile(conditionsOf(facts, thresholds), { now, remindAfterMs, linkOf }))
        onReported(reported);
    } catch (error) {
      onFailed(error);
    }
  }
}
