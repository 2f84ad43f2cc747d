import { Counter, Histogram, type Registry } from 'prom-client';
import type { Observation } from '../../domain/classify.ts';
import type { DeadReason } from '../../domain/notifications/delivery.ts';
import { ROW_KINDS, type UnreadableRow } from '../../domain/stored.ts';
import { FINAL_STATUSES, type Status } from '../../domain/submission.ts';
import type { Finality } from '../../watch/finality.ts';
import { AUTHENTICATION_FAILURES, type AuthenticationFailure } from '../access/failed-authentications.ts';
import type { ShedReason } from '../load/admission.ts';

const BUCKETS = {
  timeToFinality: [5, 10, 15, 20, 30, 40, 50, 60, 75, 90, 120, 180, 300, 600, 1_800, 7_200, 86_400],
  detectionLag: [0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600],
  requests: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 300, 1_000],
  upstream: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  commit: [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  delivery: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  http: [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
};

/** One attempt to tell somebody something. */
type DeliveryAttempt = {
  /** webhook, callback, queue, or the type of a channel of the settings. */
  kind: string;
  result: 'delivered' | 'retry' | 'dead' | 'gone';
  durationMs: number;
};

/** One request that was answered; `route` is its pattern, so that there are few. */
type ServedRequest = {
  method: string;
  route: string;
  status: number;
  /** null: it was held open on purpose, so that its length says nothing. */
  durationMs: number | null;
};

/** What happens, counted as it does. */
export type Counters = {
  polled(upstream: string, observation: Observation): void;
  finalized(finality: Finality): void;
  transactionCommitted(durationMs: number): void;
  /** A submission ended so. */
  submissionEnded(status: Status): void;
  deliveryAttempted(attempt: DeliveryAttempt): void;
  /** So many deliveries became dead letters; 0 shows that there were none yet. */
  deadLettered(dead: { kind: string; reason: DeadReason; count: number }): void;
  responded(answered: ServedRequest): void;
  shed(reason: ShedReason): void;
  authenticationFailed(reason: AuthenticationFailure): void;
  /** A row of the ledger could not be read; once for each. */
  rowUnreadable(kind: UnreadableRow['kind']): void;
  /** So many results of workers were not believed; 0 shows that there were none yet. */
  resultsRejected(reason: string, count?: number): void;
};

export function createCounters(registry: Registry): Counters {
  const counter = <T extends string>(name: string, help: string, labelNames: T[]) =>
    new Counter({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });
  const histogram = <T extends string>(name: string, help: string, labelNames: T[], buckets: number[]) =>
    new Histogram({ name: `dawatch_${name}`, help, labelNames, buckets, registers: [registry] });

  const polls = counter('polls_total', 'Requests about submissions that ended, by what came of them', [
    'upstream',
    'result',
  ]);
  const pollSeconds = histogram(
    'poll_duration_seconds',
    'How long a request about a submission took',
    ['upstream'],
    BUCKETS.upstream,
  );
  const timeToFinality = histogram(
    'time_to_finality_seconds',
    'From tracking until it was found final',
    ['upstream'],
    BUCKETS.timeToFinality,
  );
  const lag = histogram(
    'detection_lag_seconds',
    'From finality until it was noticed, at most: since a poll found it, or another submission of its block, open',
    ['upstream'],
    BUCKETS.detectionLag,
  );
  const requests = histogram(
    'requests_per_submission',
    'Requests that were made for a submission until it was found final',
    ['upstream'],
    BUCKETS.requests,
  );
  const ended = counter('submissions_ended_total', 'Submissions that ended, by the status they have since', ['status']);
  // An increase is seen of what was there before it.
  for (const status of FINAL_STATUSES) ended.inc({ status }, 0);
  const commits = histogram(
    'ledger_commit_duration_seconds',
    'A transaction of the ledger, from its beginning until it was on the disk',
    [],
    BUCKETS.commit,
  );
  const attempts = counter('delivery_attempts_total', 'Attempts to deliver, by what came of them', ['kind', 'result']);
  const attemptSeconds = histogram(
    'delivery_attempt_duration_seconds',
    'How long an attempt to deliver took',
    ['kind'],
    BUCKETS.delivery,
  );
  const dead = counter('dead_letters_total', 'Deliveries that were given up, by why', ['kind', 'reason']);
  const answers = counter('http_requests_total', 'Requests that were answered', ['method', 'route', 'status']);
  const sheds = counter(
    'http_requests_shed_total',
    'Requests that were refused with 503 because there was too much to do: tracking, or held_open',
    ['reason'],
  );
  const authenticationFailures = counter(
    'authentication_failures_total',
    'Requests whose credential was absent where one is needed, malformed, unknown or revoked, locked (not looked up: too many wrong ones came from the address) or refused by the upstream',
    ['reason'],
  );
  for (const reason of AUTHENTICATION_FAILURES) authenticationFailures.inc({ reason }, 0);
  const unreadableRows = counter(
    'ledger_unreadable_rows_total',
    'Rows of the ledger that were read and hold what can not be shown, each counted once: submission, event, delivery, webhook',
    ['kind'],
  );
  for (const kind of ROW_KINDS) unreadableRows.inc({ kind }, 0);
  const rejected = counter(
    'poll_results_rejected_total',
    'Results from Redis that were not believed, by why: malformed, signature, foreign_id, implausible_time',
    ['reason'],
  );
  const answerSeconds = histogram(
    'http_request_duration_seconds',
    'How long the answer to a request took; without those that are held open on purpose',
    ['method', 'route'],
    BUCKETS.http,
  );

  return {
    polled(upstream, observation) {
      polls.inc({ upstream, result: resultOf(observation) });
      pollSeconds.observe({ upstream }, observation.durationMs / 1_000);
    },
    finalized({ upstream, at, trackedAt, after, polls }) {
      timeToFinality.observe({ upstream }, Math.max(0, at - trackedAt) / 1_000);
      lag.observe({ upstream }, Math.max(0, at - after) / 1_000);
      requests.observe({ upstream }, polls);
    },
    submissionEnded: (status) => ended.inc({ status }),
    deadLettered: ({ count, ...labels }) => dead.inc(labels, count),
    transactionCommitted: (durationMs) => commits.observe(durationMs / 1_000),
    deliveryAttempted({ kind, result, durationMs }) {
      attempts.inc({ kind, result });
      attemptSeconds.observe({ kind }, durationMs / 1_000);
    },
    responded({ method, route, status, durationMs }) {
      answers.inc({ method, route, status });
      if (durationMs !== null) answerSeconds.observe({ method, route }, durationMs / 1_000);
    },
    shed: (reason) => sheds.inc({ reason }),
    authenticationFailed: (reason) => authenticationFailures.inc({ reason }),
    rowUnreadable: (kind) => unreadableRows.inc({ kind }),
    resultsRejected: (reason, count = 1) => rejected.inc({ reason }, count),
  };
}

/** A dozen words; what the upstream said is not among them. */
function resultOf(observation: Observation): string {
  return observation.kind === 'unavailable' ? observation.reason : observation.kind;
}
