import type { AuditTrail } from '../access/audit-store.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { LedgerError } from '../ledger/errors.ts';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { Clock } from '../lib/clock.ts';
import { escapeText } from '../lib/text.ts';
import type { Alert } from '../notifications/event-body.ts';
import { linkTo } from '../notifications/message.ts';
import type { Outbox } from '../notifications/outbox.ts';
import type { Receivers } from '../notifications/receivers-store.ts';
import type { HttpPost } from '../notifications/transport/http-post.ts';
import type { Log } from '../operations/logging/event-catalog.ts';
import type { AlertEventType } from '../submissions/event-types.ts';
import type { LedgerStats } from '../submissions/ledger-stats.ts';
import { registerAlerts, registerMutes } from './alerts-routes.ts';
import { Alerts } from './alerts-store.ts';
import { HEARTBEAT_RESULTS, Heartbeat, type HeartbeatResult } from './heartbeat.ts';
import {
  type AlertCondition,
  type AlertThresholds,
  alertPath,
  conditionsOf,
  type LiveFacts,
  notWritable,
} from './rules.ts';
import type { AlertSettings } from './settings.ts';

type UpstreamFacts = Pick<LiveFacts, 'unusedNodes' | 'pauses'>;

type Server = {
  config: AlertSettings;
  clock: Clock;
  log: Log;
  counters: { heartbeat(result: HeartbeatResult, count?: number): void };
  ledger: {
    database: LedgerDatabase;
    outbox: Outbox;
    receivers: Receivers;
    stats: LedgerStats;
    audit: AuditTrail;
  };
  upstreams: { names: readonly string[] };
  redisHealth: () => LiveFacts['redis'];
  tuning: {
    alertCheckMs: number;
    backlog: number;
    redisDownMs: number;
    noWorkersMs: number;
    chainNodeMs: number;
    pausedMs: number;
  };
};

export function openAlerts({ config, clock, log, counters, ...server }: Server) {
  const { database, audit } = server.ledger;
  const alerts = new Alerts(database, server.ledger);
  const publicUrl = config.server.public_url;
  let isWatcherWriting = () => true;
  let live: () => UpstreamFacts = () => ({ unusedNodes: [], pauses: [] });
  const watch = new AlertWatch({
    store: alerts,
    upstreams: server.upstreams.names,
    clock,
    thresholds: { ...config.alerts, ...server.tuning },
    checkMs: server.tuning.alertCheckMs,
    redis: server.redisHealth,
    live: () => live(),
    isLedgerWritable: () => isWatcherWriting(),
    publicUrl,
    onReported: ({ type, alert }) => logAlert(log, type, alert),
    onFailed: (error) => log.error({ err: error }, 'dispatcher.failed'),
  });
  const unrecorded = () => watch.unrecorded;
  const routes = { ledger: { alerts, audit }, unrecorded, clock, publicUrl };
  let heartbeat: Heartbeat | undefined;
  return {
    addReadRoutes: (app: TypedServer) => registerAlerts(app, routes),
    addChangeRoutes: (app: TypedServer) => registerMutes(app, routes),
    start(running: {
      get: HttpPost['get'];
      /** Returns why this server does not work; undefined if it works. */
      defect: () => string | undefined;
      isLedgerWritable: () => boolean;
      live: () => UpstreamFacts;
      /** Resolves when polling has begun; until then, the heartbeat is not sent. */
      polling: Promise<void>;
    }): void {
      const { get, defect, polling } = running;
      ({ isLedgerWritable: isWatcherWriting, live } = running);
      watch.start();
      const { url, every_s } = config.heartbeat;
      if (url === undefined) return;
      for (const result of HEARTBEAT_RESULTS) counters.heartbeat(result, 0);
      const logged = heartbeatLog(log);
      heartbeat = new Heartbeat({
        ...{ url, everyMs: every_s * 1_000, clock, get, defect },
        onBeat(event) {
          counters.heartbeat(event.result);
          logged(event);
        },
      });
      void polling.then(() => heartbeat?.start());
    },
    isLedgerWritable: () => watch.unrecorded === undefined,
    stop(): void {
      heartbeat?.stop();
      watch.stop();
    },
  };
}

function logAlert(log: Log, type: AlertEventType, alert: Alert): void {
  const { since, id: _, link: __, ...fields } = alert;
  const level = type === 'alert.resolved' ? 'info' : 'warn';
  log[level]({ ...fields, since: new Date(since).toISOString() }, type);
}

/** Logs the first failed, the first withheld and the first accepted of several heartbeats. */
function heartbeatLog(log: Log) {
  let last: HeartbeatResult = 'sent';
  return ({ result, reason }: { result: HeartbeatResult; reason: string | null }): void => {
    if (result === last) return;
    last = result;
    if (result === 'failed') log.warn({ error: escapeText(reason ?? '') }, 'heartbeat.failed');
    else if (result === 'withheld') log.error({ reason: reason ?? '' }, 'heartbeat.withheld');
    else log.info('heartbeat.resumed');
  };
}

type AlertWatchDeps = {
  store: Alerts;
  clock: Clock;
  upstreams: readonly string[];
  thresholds: AlertThresholds;
  checkMs: number;
  redis: () => LiveFacts['redis'];
  live: () => UpstreamFacts;
  isLedgerWritable: () => boolean;
  publicUrl: string | undefined;
  onReported: (reported: { type: AlertEventType; alert: Alert }) => void;
  onFailed: (error: unknown) => void;
};

/**
 * Evaluates the alert rules every `checkMs`. Open alerts are stored in the ledger, so a restart
 * does not repeat them. While the ledger cannot be written, that alert is in memory; the first
 * check that can write records and sends it.
 */
export class AlertWatch {
  readonly #deps: AlertWatchDeps;
  #cancel: (() => void) | undefined;
  #unwritableSince: number | null = null;

  constructor(deps: AlertWatchDeps) {
    this.#deps = deps;
  }

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
      const live = {
        ...{ now, redis: this.#deps.redis(), ...this.#deps.live() },
        unwritableSince: this.#unwritableSince,
      };
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
