import type { SubmissionStatus } from './shapes.ts';

/** Mean and percentiles in seconds, exact to 1 %. */
export type Distribution = { mean: number; p50: number; p90: number; p99: number };

/** Current counts of a server and the statistics of its last hour. */
export type Overview = {
  /** Time of the server. */
  at: string;
  submissions: Record<SubmissionStatus, number>;
  /**
   * The last 60 minutes, oldest first; the newest is incomplete. null: no finalizations, or the
   * server was not running.
   */
  per_minute: {
    at: string;
    finalized: number;
    time_to_finality_p50_s: number | null;
    time_to_finality_p99_s: number | null;
    detection_lag_p50_s: number | null;
    detection_lag_p99_s: number | null;
    polls: number | null;
  }[];
  last_hour: {
    finalized: number;
    time_to_finality_s: Distribution | null;
    /** Upper bound of the time from finality to its detection. */
    detection_lag_s: Distribution | null;
    polls_per_submission: number | null;
    /** Estimated polls with a fixed interval of 5 s. */
    fixed_5s_polls_per_submission: number | null;
  };
  upstreams: {
    name: string;
    /** closed: the upstream works. */
    state: 'closed' | 'down' | 'unauthorized';
    tracked: number;
    in_flight: number;
    budget: { limit: number; window_ms: number; used: number };
  }[];
  /** At most 10, oldest first. */
  oldest_open: {
    submission_id: string;
    upstream: string;
    status: SubmissionStatus;
    tracked_at: string;
    age_s: number;
  }[];
  deliveries: { waiting: number; dead: number; oldest_waiting_at: string | null };
  /** Connections to the live feed. */
  readers: number;
  /** null: no Redis is configured. */
  workers: number | null;
};

/** Parameters of `report`. Days are UTC days such as "2026-01-31". */
export type ReportQuery = {
  /** Default: 29 days before `to`. */
  from?: string;
  /** Included; default: today. */
  to?: string;
  /** Default: day. Hours are kept for 8 days. */
  interval?: 'hour' | 'day' | 'total';
  /** Default: upstream. `credential` needs the role operator or admin. */
  group_by?: 'none' | 'upstream' | 'credential' | 'metadata';
  /** Only submissions of this upstream. */
  upstream?: string;
};

/** Percentiles in seconds, exact to 5 %, of `count` submissions. */
export type ReportPercentiles = { count: number; p50: number; p90: number; p99: number };

/** Sums over the submissions that ended in a period. */
export type ReportSums = {
  /** By final status. */
  submissions: Record<Exclude<SubmissionStatus, 'tracking' | 'pending' | 'failing'>, number>;
  /** Changes of finalized submissions by the upstream. */
  corrected: number;
  /** Polls until the submissions ended. */
  requests: number;
  time_to_finality_s: ReportPercentiles | null;
  /** Upper bound of the time from finality to its detection. */
  detection_lag_s: ReportPercentiles | null;
  /** A decimal integer of any length: use BigInt. */
  fees: string;
  /** Like `fees`. */
  data_billed: string;
  /** Finalized submissions whose fees or billed data are not integers. They count as 0. */
  without_billing: number;
  /**
   * Numbers of submissions that were known as final in time, and of those that were not; null: no
   * objective.
   */
  objective: { good: number; bad: number } | null;
};

export type Report = {
  from: string;
  to: string;
  interval: 'hour' | 'day' | 'total';
  group_by: 'none' | 'upstream' | 'credential' | 'metadata';
  /** The setting `reports.metadata_key`. */
  metadata_key: string | null;
  /** The report contains the changes before this time. */
  counted_until: string;
  /**
   * In the order of start and group. `group` is null for all submissions, for those without a value
   * and, if `other`, for the values beyond the first 100 of a day.
   */
  rows: ({
    start: string;
    group: string | null;
    credential_id: number | null;
    other: boolean;
  } & ReportSums)[];
  total: ReportSums;
  /** The service level objectives now. Budgets are of 30 days. */
  objectives: {
    upstream: string;
    target_percent: number;
    within_s: number;
    good: number;
    bad: number;
    attained_percent: number | null;
    /** Unspent share; negative if more than the budget is spent. */
    error_budget_left: number;
    /** 1: the budget is spent exactly in 30 days. null: no submissions. */
    burn_rates: Record<'5m' | '30m' | '1h' | '6h' | '3d', number | null>;
  }[];
};
