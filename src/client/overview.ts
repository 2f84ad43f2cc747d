import type { SubmissionStatus } from './shapes.ts';

/** Seconds; exact to 4 %. */
export type Distribution = { mean: number; p50: number; p90: number; p99: number };

/** What is going on at a server, and how its last hour was. */
export type Overview = {
  /** Now, by its clock. */
  at: string;
  submissions: Record<SubmissionStatus, number>;
  /** The last 60, the oldest first; the newest is not over. null: nothing was found final, or it was not running. */
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
    /** From finality until it was noticed, at most. */
    detection_lag_s: Distribution | null;
    polls_per_submission: number | null;
    /** If each were asked about every 5 s. */
    fixed_5s_polls_per_submission: number | null;
  };
  upstreams: {
    name: string;
    /** closed: it answers. */
    state: 'closed' | 'down' | 'unauthorized';
    tracked: number;
    in_flight: number;
    budget: { limit: number; window_ms: number; used: number };
  }[];
  /** At most 10, the oldest first. */
  oldest_open: {
    submission_id: string;
    upstream: string;
    status: SubmissionStatus;
    tracked_at: string;
    age_s: number;
  }[];
  deliveries: { waiting: number; dead: number; oldest_waiting_at: string | null };
  /** Of the live feed. */
  readers: number;
  /** null: there is no Redis. */
  workers: number | null;
};
