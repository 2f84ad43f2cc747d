import type { FastifyInstance } from 'fastify';
import { Counter, Histogram, type Registry } from 'prom-client';
import {
  AUTHENTICATION_FAILURES,
  type AuthenticationFailure,
} from '../../access/authentication.ts';
import type { DeadReason } from '../../notifications/delivery.ts';
import type { Observation } from '../../submissions/classify.ts';
import type { ShedReason } from '../../submissions/intake.ts';
import type { Finalization } from '../../submissions/ledger-stats.ts';
import type { RecordedChange } from '../../submissions/store-results.ts';
import { FINAL_STATUSES, type Status } from '../../submissions/submission.ts';

const BUCKETS = {
  timeToFinality: [5, 10, 15, 20, 30, 40, 50, 60, 75, 90, 120, 180, 300, 600, 1_800, 7_200, 86_400],
  detectionLag: [0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600],
  requests: [1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 300, 1_000],
  upstream: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  commit: [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
  delivery: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  http: [0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
};

export type Counters = ReturnType<typeof createCounters>;

export function createCounters(registry: Registry) {
  const counter = <T extends string>(name: string, help: string, labelNames: T[]) =>
    new Counter({ name: `dawatch_${name}`, help, labelNames, registers: [registry] });
  const histogram = <T extends string>(
    name: string,
    help: string,
    labelNames: T[],
    buckets: number[],
  ) => new Histogram({ name: `dawatch_${name}`, help, labelNames, buckets, registers: [registry] });

  const polls = counter('polls_total', 'Completed polls', ['upstream', 'result']);
  const pollSeconds = histogram(
    'poll_duration_seconds',
    'Duration of a poll',
    ['upstream'],
    BUCKETS.upstream,
  );
  const verifications = counter(
    'chain_verifications_total',
    'Verdicts of the chain: confirmed, contradicted or unavailable',
    ['upstream', 'verdict'],
  );
  const timeToFinality = histogram(
    'time_to_finality_seconds',
    'Time from tracking to detected finality',
    ['upstream'],
    BUCKETS.timeToFinality,
  );
  const lag = histogram(
    'detection_lag_seconds',
    'Time from finality to its detection. source: chain (a node announced it) or estimate',
    ['upstream', 'source'],
    BUCKETS.detectionLag,
  );
  const requests = histogram(
    'requests_per_submission',
    'Polls of a submission until it became final',
    ['upstream'],
    BUCKETS.requests,
  );
  const ended = counter('submissions_ended_total', 'Submissions that ended', ['status']);
  // increase() sees the first event only if the sample existed before it.
  for (const status of FINAL_STATUSES) ended.inc({ status }, 0);
  const commits = histogram(
    'ledger_commit_duration_seconds',
    'Duration of a ledger transaction with its sync',
    [],
    BUCKETS.commit,
  );
  const attempts = counter('delivery_attempts_total', 'Delivery attempts', ['kind', 'result']);
  const attemptSeconds = histogram(
    'delivery_attempt_duration_seconds',
    'Duration of a delivery attempt',
    ['kind'],
    BUCKETS.delivery,
  );
  const dead = counter('dead_letters_total', 'Deliveries that became dead letters', [
    'kind',
    'reason',
  ]);
  const heartbeats = counter(
    'heartbeats_total',
    'Heartbeats: sent, failed, or withheld because the server does not work',
    ['result'],
  );
  const steps = counter(
    'clock_steps_total',
    'Clock steps of more than a minute: forward (or the machine slept) or back',
    ['direction'],
  );
  for (const direction of ['forward', 'back'] as const) steps.inc({ direction }, 0);
  const responses = counter('http_requests_total', 'Completed HTTP requests', [
    'method',
    'route',
    'status',
  ]);
  const sheds = counter(
    'http_requests_shed_total',
    'Requests refused with 503: too many waiting ids (tracking) or held_open requests',
    ['reason'],
  );
  const authenticationFailures = counter(
    'authentication_failures_total',
    'Failed authentications; reason as in auth.failed, or oidc (a sign-in)',
    ['reason'],
  );
  for (const reason of AUTHENTICATION_FAILURES) authenticationFailures.inc({ reason }, 0);
  const responseSeconds = histogram(
    'http_request_duration_seconds',
    'Duration of an HTTP request that is not held open',
    ['method', 'route'],
    BUCKETS.http,
  );

  return {
    polled(upstream: string, observation: Observation) {
      polls.inc({ upstream, result: resultOf(observation) });
      pollSeconds.observe({ upstream }, observation.durationMs / 1_000);
    },
    recorded({ submission: { upstream }, result: { change } }: RecordedChange) {
      if (change?.chain) verifications.inc({ upstream, verdict: change.chain.verdict });
    },
    finalized({ upstream, at, trackedAt, detection, polls: count }: Finalization) {
      timeToFinality.observe({ upstream }, Math.max(0, at - trackedAt) / 1_000);
      if (detection) lag.observe({ upstream, source: detection.source }, detection.lagMs / 1_000);
      requests.observe({ upstream }, count);
    },
    submissionEnded: (status: Status) => ended.inc({ status }),
    transactionCommitted: (durationMs: number) => commits.observe(durationMs / 1_000),
    /** `kind`: webhook, callback, queue, or the type of a configured channel. */
    deliveryAttempted(attempt: {
      kind: string;
      result: 'delivered' | 'retry' | 'dead' | 'gone';
      durationMs: number;
    }) {
      const { kind, result, durationMs } = attempt;
      attempts.inc({ kind, result });
      attemptSeconds.observe({ kind }, durationMs / 1_000);
    },
    /** A `count` of 0 creates the sample without counting. */
    deadLettered: ({ count, ...labels }: { kind: string; reason: DeadReason; count: number }) =>
      dead.inc(labels, count),
    /** A `count` of 0 creates the sample without counting. */
    heartbeat: (result: 'sent' | 'failed' | 'withheld', count = 1) =>
      heartbeats.inc({ result }, count),
    clockStepped: (direction: 'forward' | 'back') => steps.inc({ direction }),
    /** `durationMs` null: the request was held open, so its duration is not observed. */
    responded(response: {
      method: string;
      route: string;
      status: number;
      durationMs: number | null;
    }) {
      const { method, route, status, durationMs } = response;
      responses.inc({ method, route, status });
      if (durationMs !== null) responseSeconds.observe({ method, route }, durationMs / 1_000);
    },
    shed: (reason: ShedReason) => sheds.inc({ reason }),
    authenticationFailed: (reason: AuthenticationFailure) => authenticationFailures.inc({ reason }),
  };
}

/** Returns one of about a dozen words, never a text of the upstream. */
function resultOf(observation: Observation): string {
  return observation.kind === 'unavailable' ? observation.reason : observation.kind;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Held open: its duration is not measured, and response deadlines do not apply. */
    staysOpen?: boolean;
  }
}

/** Counts responses by route pattern, so that no label contains parts of a path. */
export function countRequests(app: FastifyInstance, counters: Counters): void {
  app.addHook('onResponse', (request, reply, done) => {
    const { url: route, config } = request.routeOptions;
    counters.responded({
      // Without a route, clients could create dozens of labels.
      method: route === undefined ? 'any' : request.method,
      route: route ?? 'none',
      status: reply.statusCode,
      durationMs: config?.staysOpen ? null : reply.elapsedTime,
    });
    done();
  });
}
