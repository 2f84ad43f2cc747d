import type { Classification, Observation } from '../../src/domain/classify.ts';
import type { PolicyFactory } from '../../src/pacing/policy.ts';
import type { BudgetSettings } from '../../src/pacing/request-budget.ts';
import { Pacer } from '../../src/pacing/scheduler.ts';
import { seededRandom } from '../support/random.ts';
import { Mail } from './mail.ts';

/** An upstream in virtual time; `now` never goes back. */
export type World = {
  submit(now: number): string;
  answer(submissionId: string, now: number): Classification;
  /** When a lookup first answered Finalized. */
  finalizedAt(submissionId: string, now: number): number | undefined;
};

/** What became of one submission, milliseconds after the start. */
type Life = {
  submissionId: string;
  trackedAt: number;
  askedAt: number[];
  /** When a lookup first answered Finalized, or `trackedAt` where that was later. */
  finalAt: number;
  detectedAt: number;
};

export type Run = {
  lives: Life[];
  requests: number;
  throttled: number;
};

export const START_MS = 1_760_000_003_217;
export const LATENCY_MS = { least: 30, jitter: 40 };

type Simulation = {
  world: World;
  /** When submissions are made and tracked, milliseconds after the start, in order. */
  arrivals: Iterable<number>;
  budget: BudgetSettings;
  policy: PolicyFactory;
  seed: number;
  /** The end, milliseconds after the start, even if somebody is still open. */
  endMs?: number;
};

/** One world with one policy in virtual time: the real pacer and nothing in between. */
export function simulate({ world, budget, policy, seed, ...rest }: Simulation): Run {
  const { endMs = Number.POSITIVE_INFINITY } = rest;
  const random = seededRandom(seed);
  const pacer = new Pacer({
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
  const lives = new Map<string, Life>();
  const answers = new Mail<{ submissionId: string; sentAt: number }>();
  const run: Run = { lives: [], requests: 0, throttled: 0 };
  let arrival = arrivals.next();
  let now = START_MS;
  let open = 0;

  const track = () => {
    const submissionId = world.submit(now);
    lives.set(submissionId, {
      submissionId,
      trackedAt: now - START_MS,
      askedAt: [],
      finalAt: 0,
      detectedAt: Number.POSITIVE_INFINITY,
    });
    pacer.add({ submissionId, trackedAt: now, seen: false }, now);
    open++;
    arrival = arrivals.next();
  };
  const send = (submissionId: string) => {
    run.requests++;
    lives.get(submissionId)?.askedAt.push(now - START_MS);
    answers.add(now + LATENCY_MS.least + random() * LATENCY_MS.jitter, { submissionId, sentAt: now });
  };
  const answer = ({ submissionId, sentAt }: { submissionId: string; sentAt: number }) => {
    // The upstream reads its database when half of the time has passed.
    const verdict = world.answer(submissionId, (now + sentAt) / 2);
    if (verdict.kind === 'throttled') run.throttled++;
    const observation: Observation = { submissionId, at: now, durationMs: now - sentAt, ...verdict };
    const life = lives.get(submissionId);
    if (life && verdict.kind === 'finalized' && life.detectedAt === Number.POSITIVE_INFINITY) {
      life.detectedAt = now - START_MS;
      const finalAt = (world.finalizedAt(submissionId, now) ?? now) - START_MS;
      life.finalAt = Math.max(life.trackedAt, finalAt);
      open--;
    }
    pacer.observe(observation, verdict.kind !== 'finalized', now);
  };

  while ((open > 0 || !arrival.done) && now < START_MS + endMs) {
    const arrivalAt = arrival.done ? Number.POSITIVE_INFINITY : START_MS + arrival.value;
    const answerAt = answers.nextAt;
    const wakeAt = Math.max(now, pacer.wakeAt());
    now = Math.max(now, Math.min(arrivalAt, answerAt, wakeAt));
    if (arrivalAt <= now) track();
    else if (answerAt <= now) answer(answers.take());
    for (let batch = pacer.next(now); batch.length > 0; batch = pacer.next(now)) for (const id of batch) send(id);
  }
  run.lives = [...lives.values()];
  return run;
}
