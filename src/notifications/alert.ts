import type { BreakerState } from '../submissions/upstream.ts';
import type { DisabledReason } from './webhook.ts';

/** Conditions that operators are notified of, once at the start and once at the end. */
export const AlertRule = {
  /** Submissions are open for longer than `stuck_after_s`, per upstream. */
  stuck: 'stuck',
  /**
   * Too many submissions failed with Error within a window, and are failing or failed now. Per
   * upstream.
   */
  failures: 'failures',
  /** The chain has other blocks than those that an upstream names for watched submissions. */
  contradicted: 'contradicted',
  /** An upstream does not respond. */
  upstreamDown: 'upstream_down',
  /** An upstream rejects the API key. */
  credentialsRefused: 'credentials_refused',
  /** Too many deliveries wait. */
  backlog: 'backlog',
  /** Deliveries became dead letters, per destination. */
  deadLetters: 'dead_letters',
  /** A webhook was disabled because its receiver responded 410 or failed for days. */
  webhookDisabled: 'webhook_disabled',
  /** The ledger's write-ahead log has grown large. */
  walSize: 'wal_size',
  /** The disk of the ledger has little free space. */
  diskLow: 'disk_low',
  /** The ledger cannot be written. Kept in memory until it can. */
  ledgerNotWritable: 'ledger_not_writable',
  /** Redis does not respond. */
  redisDown: 'redis_down',
  /** All workers have left. */
  noWorkers: 'no_workers',
} as const;
export type AlertRule = (typeof AlertRule)[keyof typeof AlertRule];

export const ALERT_RULES = Object.values(AlertRule);

/**
 * A condition that holds now. Rule and subject identify it; there is at most one open alert for
 * each pair.
 */
export type AlertCondition = {
  rule: AlertRule;
  /** An upstream, a destination, "ledger", "redis", "workers", or "all". */
  subject: string;
  /** One sentence for operators. */
  summary: string;
  /** Number of affected submissions or deliveries. */
  count: number | null;
  /** Since when it has held; absent: since it was found. */
  since?: number | null;
};

/** The rule and the subject identify a condition. */
type AlertKey = { rule: AlertRule; subject: string };

/** Returns one sentence for operators about the end of an alert. */
export function resolvedSummary({ rule, subject }: AlertKey): string {
  return RESOLVED[rule](subject);
}

const RESOLVED: Record<AlertRule, (subject: string) => string> = {
  [AlertRule.upstreamDown]: (subject) => `The upstream ${subject} is responding again`,
  [AlertRule.credentialsRefused]: (subject) =>
    `The upstream ${subject} no longer rejects the API key`,
  [AlertRule.stuck]: (subject) => `No submission of the upstream ${subject} is stuck any longer`,
  [AlertRule.failures]: (subject) =>
    `Fewer submissions of the upstream ${subject} are failing: below half the threshold`,
  [AlertRule.contradicted]: (subject) =>
    `No submission of the upstream ${subject} is contradicted any longer, or they are no longer polled`,
  [AlertRule.backlog]: () => 'The delivery backlog is below half the threshold',
  [AlertRule.deadLetters]: (subject) =>
    `The dead letters of ${subject} were replayed or are older than a day, or the destination was disabled or deleted`,
  [AlertRule.webhookDisabled]: (subject) =>
    `The ${subject.replace(':', ' ')} was enabled again, deleted, or disabled by an operator`,
  [AlertRule.walSize]: () => "The ledger's write-ahead log is below half the threshold",
  [AlertRule.diskLow]: () => 'The disk of the ledger has enough free space again',
  [AlertRule.ledgerNotWritable]: () => 'The ledger can be written again',
  [AlertRule.redisDown]: () => 'Redis responds again',
  [AlertRule.noWorkers]: () => 'A worker has joined, or Redis is no longer configured',
};

/** A condition with its start in epoch milliseconds, as an event reports it. */
export type Alert = Omit<AlertCondition, 'since'> & {
  since: number;
  id: number;
  /** Address of the dashboard page about it; absent without `server.public_url`. */
  link?: string;
  /** The event is recorded, and sent to no destination. */
  muted?: true;
};

/** An alert as stored. Times are epoch milliseconds. */
export type AlertRecord = Omit<AlertCondition, 'since'> & {
  /** Identifies this occurrence: a condition that holds again later gets another id. */
  id: number;
  since: number;
  /**
   * When its beginning or a reminder was last sent; null: neither was sent, because the alert was
   * muted.
   */
  sentAt: number | null;
  acknowledgedAt: number | null;
  /** Name of the credential. */
  acknowledgedBy: string | null;
  /** null: it is firing. */
  resolvedAt: number | null;
};

/**
 * A time in which alerts are recorded and not sent. Without a rule it covers all alerts: a
 * maintenance window.
 */
export type NewMute = {
  /** null: all rules. */
  rule: AlertRule | null;
  /** null: all subjects of the rule. */
  subject: string | null;
  /** Epoch milliseconds. */
  from: number;
  until: number;
  reason: string;
};

export type Mute = NewMute & { id: number; createdAt: number; createdBy: string };

/** Whether a mute that is active now covers an alert. */
export function covers(mute: Mute, alert: AlertKey): boolean {
  if (mute.rule !== null && mute.rule !== alert.rule) return false;
  return mute.subject === null || mute.subject === alert.subject;
}

/** Times are epoch milliseconds. */
export type AlertQuery = {
  /** All configured upstreams. */
  upstreams: readonly string[];
  /** Failures since then count. */
  failuresSince: number;
  /** Dead letters since then count. */
  deadSince: number;
  /** Deliveries that have been waiting since before that count. */
  waitingBefore: number;
  now: number;
};

/** What alert rules depend on and the ledger does not contain. Times are epoch milliseconds. */
export type LiveFacts = {
  now: number;
  /** Since when the ledger could not be written; null: it can. */
  unwritableSince: number | null;
  /** Undefined: Redis is not configured. */
  redis:
    | {
        /** Since when Redis has not responded; null: it responds. */
        disconnectedSince: number | null;
        workers: readonly unknown[];
        /** When the last worker left; null: there is one, or there has been none. */
        workersLeftAt: number | null;
      }
    | undefined;
};

/** The current state of everything that alert rules depend on. */
export type AlertFacts = LiveFacts & {
  /** `watched` is counted only while the upstream is down. */
  upstreams: {
    name: string;
    state: BreakerState;
    outSince: number | null;
    /** Of its outage; null: there is none. */
    reason: string | null;
    watched: number;
    stuck: number;
    /** Watched submissions that the chain, or the hash of their data, contradicts. */
    contradicted: number;
    /** Why the newest of them is contradicted; null: none is. */
    contradiction: string | null;
    /** With an Error since `failuresSince`, and failing or failed now. */
    failing: number;
    failed: number;
  }[];
  waiting: number;
  /** Dead letters of destinations that are not disabled, except those of alerts. */
  dead: { receiver: string; description: string | null; count: number }[];
  /** `description`: as its owner named the webhook; null or empty: it has none. */
  disabled: { id: string; description: string | null; reason: DisabledReason; since: number }[];
  /** Bytes of the ledger's write-ahead log. */
  walBytes: number;
  /** The file system of the ledger; undefined: unknown. */
  disk: { freeBytes: number; sizeBytes: number } | undefined;
  /** Alerts that were raised and are not resolved. */
  open: { rule: AlertRule; subject: string }[];
};
