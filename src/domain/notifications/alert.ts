import type { BreakerState } from '../upstream-health.ts';
import type { DisabledReason } from './webhook.ts';

/** Conditions that those who run dawatch are told of, once when they begin and once when they are over. */
export const AlertRule = {
  /** Submissions are open for longer than `stuck_after_s`. Per upstream. */
  stuck: 'stuck',
  /** Too many submissions failed with Error within a window, and are failing or failed now. Per upstream. */
  failures: 'failures',
  /** An upstream doesn't answer. */
  upstreamDown: 'upstream_down',
  /** An upstream rejects the API key. */
  credentialsRefused: 'credentials_refused',
  /** Too many deliveries wait. */
  backlog: 'backlog',
  /** Deliveries were given up. Per destination. */
  deadLetters: 'dead_letters',
  /** A webhook was disabled because its receiver is gone, or failed for days. */
  webhookDisabled: 'webhook_disabled',
  /** The write-ahead log beside the ledger has grown large. */
  walSize: 'wal_size',
} as const;
export type AlertRule = (typeof AlertRule)[keyof typeof AlertRule];

export const ALERT_RULES = Object.values(AlertRule);

/** A condition that holds now. Rule and subject name it; there is one alert of a name at a time. */
export type AlertCondition = {
  rule: AlertRule;
  /** What it is about: an upstream, a destination, the ledger; "all" where it is about everything. */
  subject: string;
  /** One sentence for people. */
  summary: string;
  /** How many submissions or deliveries it is about. */
  count: number | null;
  /** Since when it has held, where that is known; else it is the moment at which it was found. */
  since?: number | null;
};

/** One sentence for people: what is so now that the alert is over. */
export function resolvedSummary({ rule, subject }: Pick<AlertCondition, 'rule' | 'subject'>): string {
  switch (rule) {
    case AlertRule.upstreamDown:
      return `The upstream ${subject} is responding again`;
    case AlertRule.credentialsRefused:
      return `The upstream ${subject} no longer rejects the API key`;
    case AlertRule.stuck:
      return `No submission of the upstream ${subject} is stuck any longer`;
    case AlertRule.failures:
      return `Fewer submissions of the upstream ${subject} are failing: below half the threshold`;
    case AlertRule.backlog:
      return 'The delivery backlog is below half the threshold';
    case AlertRule.deadLetters:
      return `The dead letters of ${subject} were replayed or are older than a day, or the destination was disabled or deleted`;
    case AlertRule.webhookDisabled:
      return `The ${subject.replace(':', ' ')} was enabled again, deleted, or disabled by an operator`;
    case AlertRule.walSize:
      return "The ledger's write-ahead log is below half the threshold";
    default:
      return rule satisfies never;
  }
}

/** A condition with the time since when it has held, in epoch milliseconds. */
export type Alert = Omit<AlertCondition, 'since'> & { since: number };

/** Times are epoch milliseconds. */
export type AlertQuery = {
  /** The configured ones. */
  upstreams: readonly string[];
  /** Failures from then on count. */
  failuresSince: number;
  /** What was given up from then on counts. */
  deadSince: number;
  /** What has waited since before that counts. */
  waitingBefore: number;
};

/** What alerts are judged by, as it is now. */
export type AlertFacts = {
  /** `watched`: counted only while it is out. */
  upstreams: {
    name: string;
    state: BreakerState;
    outSince: number | null;
    watched: number;
    stuck: number;
    /** With an Error since `failuresSince`, and failing or failed now. */
    failing: number;
    failed: number;
  }[];
  waiting: number;
  /** Of destinations that are not disabled; alerts that could not be told don't count. */
  dead: { receiver: string; count: number }[];
  disabled: { id: string; reason: DisabledReason; since: number }[];
  /** Bytes of the write-ahead log beside the ledger. */
  walBytes: number;
  /** What was told and is not over. */
  open: { rule: AlertRule; subject: string }[];
};
