import type { SubmissionStatus } from './shapes.ts';

/** Mean and percentiles in seconds, exact to 1 %. */
export type Distribution = { mean: number; p50: number; p90: number; p99: number };

/** Current counts of a server and the statistics of its last hour. */
export type Overview = {
  /** Time of the server. */
  at: string;
  submissions: Record<SubmissionStatus, number>;
  /** The last 60 minutes, oldest first; the newest is incomplete. null: no finalizations, or the server was not running. */
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
