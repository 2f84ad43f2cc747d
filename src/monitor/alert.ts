import type { BreakerState } from './breaker.ts';
import type { DisabledReason } from './webhook.ts';

/** Conditions that those who run dawatch are told of, once when they begin and once when they are over. */
export const AlertRule = {
  /** Submissions are open for longer than `stuck_after_s`. Per upstream. */
  stuck: 'stuck',
  /** Too many submissions failed within a window. Per upstream. */
  failures: 'failures',
  /** An upstream doesn't answer. */
  upstreamDown: 'upstream_down',
  /** An upstream refuses our key. */
  credentialsRefused: 'credentials_refused',
  /** Too many deliveries wait. */
  backlog: 'backlog',
  /** Deliveries were given up. Per destination. */
  deadLetters: 'dead_letters',
  /** A webhook was disabled because its receiver is gone, or failed for days. */
  webhookDisabled: 'webhook_disabled',
} as const;
export type AlertRule = (typeof AlertRule)[keyof typeof AlertRule];

export const ALERT_RULES = Object.values(AlertRule);

/** A condition that holds now. Rule and subject name it; there is one alert of a name at a time. */
export type Condition = {
  rule: AlertRule;
  /** What it is about: an upstream, a destination; "all" where it is about everything. */
  subject: string;
  /** One sentence for people. */
  summary: string;
  /** How many submissions or deliveries it is about. */
  count: number | null;
};

/** A condition with the time since when it has held, in epoch milliseconds. */
export type Alert = Condition & { since: number };

/** What alerts are judged by, as it is now. */
export type AlertFacts = {
  upstreams: {
    name: string;
    state: BreakerState;
    outSince: number | null;
    watched: number;
    stuck: number;
    failed: number;
  }[];
  waiting: number;
  /** Of destinations that are not disabled. */
  dead: { receiver: string; count: number }[];
  disabled: { id: string; reason: DisabledReason; url: string | null; since: number }[];
};
