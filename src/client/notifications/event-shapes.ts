import type { Submission, SubmissionStatus } from '../shapes.ts';
import type { ChannelTestEvent, TestEvent } from './test-events.ts';

/** A submission at the time of an event; `deadline_at` without extensions. */
export type EventSubmission = Omit<
  Submission,
  | 'polls'
  | 'last_polled_at'
  | 'next_poll_at'
  | 'not_found_since'
  | 'unknown_grace_s'
  | 'stuck_after_s'
  | 'callback_url'
>;

/** A change of a submission. */
export type SubmissionEvent = {
  /** Stable, for deduplication. */
  id: string;
  type: `submission.${'finalized' | 'failing' | 'recovered' | 'failed' | 'unknown' | 'rejected' | 'expired' | 'cancelled' | 'retracked' | 'stuck' | 'corrected'}`;
  timestamp: string;
  data: {
    /** Sequence number over all events; the larger number is newer. */
    sequence: number;
    submission: EventSubmission;
    previous_status: SubmissionStatus;
    previous_upstream_state: string | null;
    previous_error: string | null;
    previous_data: Record<string, unknown> | null;
    /**
     * True: upstream data was omitted or shortened to limit the size of the event. `href` has all
     * of it.
     */
    cut: boolean;
    /** Path of the submission on the server. */
    href: string;
  };
};

/** A change of an upstream. */
export type UpstreamEvent = {
  id: string;
  type: `upstream.${'down' | 'up' | 'unauthorized'}`;
  timestamp: string;
  data: { sequence: number; upstream: string };
};

/** An alert for operators: a condition begins, persists or ends. */
export type AlertEvent = {
  id: string;
  type: `alert.${'raised' | 'reminder' | 'resolved'}`;
  timestamp: string;
  data: {
    sequence: number;
    alert: {
      rule:
        | 'stuck'
        | 'failures'
        | 'upstream_down'
        | 'credentials_refused'
        | 'backlog'
        | 'dead_letters'
        | 'webhook_disabled'
        | 'wal_size'
        | 'error_budget';
      subject: string;
      summary: string;
      count: number | null;
      since: string;
      /** For `alerts.get`; absent in events of older servers. */
      id?: number | undefined;
      /** Address of the dashboard page about it; absent without `server.public_url`. */
      link?: string | undefined;
      /**
       * Present only in the live feed: recorded while the alert was muted, and sent to no
       * destination.
       */
      muted?: true | undefined;
    };
  };
};

/** Sent only by the live feed: events after `after` up to `through` may be missing. */
export type FeedGap = { id: string; type: 'feed.gap'; data: { after: number; through: number } };

/** An event of webhooks and the live feed. Ignore unknown types, which a newer server may send. */
export type DawatchEvent =
  | SubmissionEvent
  | UpstreamEvent
  | AlertEvent
  | TestEvent
  | ChannelTestEvent;
