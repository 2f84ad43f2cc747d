import type { FinalizedHead, PolicyFactory } from '../../src/pacing/index.ts';
import type { BudgetSettings } from '../../src/polling/poll-queues.ts';
import { Scheduler } from '../../src/polling/scheduler.ts';
import type { Classification, Observation } from '../../src/submissions/classify.ts';
import { seededRandom } from '../support/random.ts';
import { ResponseQueue } from './response-queue.ts';

/** An upstream in virtual time. `now` must not decrease between calls. */
export type World = {
  submit(now: number): string;
  respond(submissionId: string, now: number): Classification;
  /** The first moment at which a lookup returns Finalized. */
  finalizedAt(submissionId: string, now: number): number | undefined;
};

/** One submission of a run. Times are milliseconds after the start. */
type SimulatedSubmission = {
  submissionId: string;
  trackedAt: number;
  polledAt: number[];
  /** The later of `trackedAt` and the first moment at which a lookup returns Finalized. */
  finalAt: number;
  detectedAt: number;
  /** The detection lag as dawatch estimates it, ms; null: it has no estimate. */
  estimatedLagMs: number | null;
};

export type Run = {
  submissions: SimulatedSubmission[];
  requests: number;
  throttled: number;
};

export const START_MS = 1_760_000_003_217;
/** The chain is older than the run. */
export const CHAIN_START_MS = START_MS - 600_000;
export const LATENCY_MS = { least: 30, jitter: 40 };
/** A timer fires on the first whole millisecond after its time, and up to this much later. */
const TIMER_LATE_MS = 2;

/** `at`: when the policy is told, epoch ms. A head may be older. */
export type ReportedHead = { head: FinalizedHead; at: number };

type Simulation = {
  world: World;
  /** When submissions are made and tracked, milliseconds after the start, in order. */
  arrivals: Iterable<number>;
  budget: BudgetSettings;
  policy: PolicyFactory;
  seed: number;
  /** What nodes of the chain announce, in order. */
  heads?: readonly ReportedHead[];
  /** Uniformly random, from `least` to `least + jitter`. */
  latencyMs?: { least: number; jitter: number } | undefined;
  /** The run ends at this time (ms after the start), even with submissions still open. */
  endMs?: number;
};

/** Runs the real scheduler and a policy against one world in virtual time. */
export function simulate({ world, budget, policy, seed, ...rest }: Simulation): Run {
  const { endMs = Number.POSITIVE_INFINITY, heads = [], latencyMs = LATENCY_MS } = rest;
  const random = seededRandom(seed);
  const scheduler = new Scheduler({
    settings: {
      budget,
      breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
      leaseMs: 30_000,
      recheckMs: 0,
    },
    policy,
    random,
  });
  const arrivals = rest.arrivals[Symbol.iterator]();
  const submissions = new Map<string, SimulatedSubmission>();
  const responses = new ResponseQueue<{ submissionId: string; sentAt: number }>();
  const run: Run = { submissions: [], requests: 0, throttled: 0 };
  let arrival = arrivals.next();
  let nextHead = 0;
  let now = START_MS;
  let open = 0;
  let lateMs = 0;

  const track = () => {
    const submissionId = world.submit(now);
    submissions.set(submissionId, {
      submissionId,
      trackedAt: now - START_MS,
      polledAt: [],
      finalAt: 0,
      detectedAt: Number.POSITIVE_INFINITY,
      estimatedLagMs: null,
    });
    scheduler.add({ submissionId, trackedAt: now, seen: false }, now);
    open++;
    arrival = arrivals.next();
  };
  const send = (submissionId: string) => {
    run.requests++;
    submissions.get(submissionId)?.polledAt.push(now - START_MS);
    responses.add(now + latencyMs.least + random() * latencyMs.jitter, {
      submissionId,
      sentAt: now,
    });
  };
  const receive = ({ submissionId, sentAt }: { submissionId: string; sentAt: number }) => {
    // The upstream reads its database after half of the latency.
    const verdict = world.respond(submissionId, (now + sentAt) / 2);
    if (verdict.kind === 'throttled') run.throttled++;
    const observation: Observation = {
      submissionId,
      at: now,
      durationMs: now - sentAt,
      ...verdict,
    };
    const submission = submissions.get(submissionId);
    if (
      submission &&
      verdict.kind === 'finalized' &&
      submission.detectedAt === Number.POSITIVE_INFINITY
    ) {
      submission.detectedAt = now - START_MS;
      const { blockNumber } = verdict;
      submission.estimatedLagMs = scheduler.lagOf({ submissionId, blockNumber, at: now }, now);
      const finalAt = (world.finalizedAt(submissionId, now) ?? now) - START_MS;
      submission.finalAt = Math.max(submission.trackedAt, finalAt);
      open--;
    }
    scheduler.observe(observation, verdict.kind !== 'finalized', now);
  };

  while ((open > 0 || !arrival.done) && now < START_MS + endMs) {
    const arrivalAt = arrival.done ? Number.POSITIVE_INFINITY : START_MS + arrival.value;
    const responseAt = responses.nextAt;
    const reported = heads[nextHead];
    const headAt = reported?.at ?? Number.POSITIVE_INFINITY;
    const wakeAt = Math.ceil(scheduler.wakeAt()) + lateMs;
    now = Math.max(now, Math.min(arrivalAt, responseAt, headAt, wakeAt));
    if (arrivalAt <= now) track();
    else if (reported && headAt <= now) {
      scheduler.observeHead(reported.head, now);
      nextHead++;
    } else if (responseAt <= now) receive(responses.take());
    for (let batch = scheduler.next(now); batch.length > 0; batch = scheduler.next(now)) {
      for (const id of batch) send(id);
      lateMs = TIMER_LATE_MS * random();
    }
  }
  run.submissions = [...submissions.values()];
  return run;
}
