/** The alert rules, which src/alerts/rules.ts defines, with the severity of their messages. */
export const ALERT_SEVERITIES = {
  stuck: 'warning',
  failures: 'warning',
  contradicted: 'warning',
  upstream_down: 'critical',
  credentials_refused: 'critical',
  backlog: 'warning',
  dead_letters: 'warning',
  webhook_disabled: 'warning',
  wal_size: 'warning',
  disk_low: 'warning',
  ledger_not_writable: 'critical',
  redis_down: 'warning',
  no_workers: 'warning',
} as const;
export type AlertRule = keyof typeof ALERT_SEVERITIES;
export const ALERT_RULES = Object.keys(ALERT_SEVERITIES) as AlertRule[];

/** A condition that operators are notified of, as an event reports it. */
export type Alert = {
  id: number;
  rule: AlertRule;
  /** An upstream, a destination, "ledger", "redis", "workers", or "all". */
  subject: string;
  summary: string;
  count: number | null;
  since: number;
  /** Address of the dashboard page about it; absent without `server.public_url`. */
  link?: string;
  /** The event is recorded, and sent to no destination. */
  muted?: true;
};
