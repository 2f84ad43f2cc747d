import type { Clock } from '../lib/clock.ts';
import { type Observation, storedData } from '../submissions/classify.ts';
import { canonicalId, Status, type Submission } from '../submissions/submission.ts';
import type { Scheduler } from './scheduler.ts';

/** `retryAfterMs`: after which time a retry is reasonable; null: that is not known. */
type Failure = {
  kind: 'failed';
  reason: 'upstream' | 'timeout' | 'busy';
  error: string;
  retryAfterMs: number | null;
};

export type OnDemandResult = { kind: 'observed'; observation: Observation } | Failure;

const UPSTREAM_DOWN = 'the upstream is down';
const BUDGET_EXHAUSTED = 'the request budget of the upstream is exhausted at the moment';
const LEDGER_UNAVAILABLE =
  'the ledger cannot be written at the moment, and nothing is polled until then';
const NO_RESPONSE = 'the upstream did not respond in time';

export const NOT_POLLING = failed('busy', 'this server is starting or stopping', 1_000);

type OnDemandPoll = {
  result: Promise<OnDemandResult>;
  complete: (result: OnDemandResult) => void;
};

/** An on-demand poll is refused if the request budget is exhausted for longer than this. */
const MAX_ON_DEMAND_WAIT_MS = 10_000;
/** Longer than MAX_ON_DEMAND_WAIT_MS, so that no poll expires just when the budget is available. */
export const ON_DEMAND_WAIT_MS = MAX_ON_DEMAND_WAIT_MS + 1_000;
const MAX_WAITING = 10_000;

/** At most one poll per submission. A poll waits for the request budget, then is in flight. */
export class OnDemandPolls {
  readonly #scheduler: Scheduler;
  readonly #clock: Clock;
  readonly #isLedgerAvailable: () => boolean;
  readonly #waiting = new Set<string>();
  readonly #open = new Map<string, OnDemandPoll>();

  constructor(deps: { scheduler: Scheduler; clock: Clock; isLedgerAvailable: () => boolean }) {
    this.#scheduler = deps.scheduler;
    this.#clock = deps.clock;
    this.#isLedgerAvailable = deps.isLedgerAvailable;
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /**
   * Queues a poll, or joins the open one. Fails after ON_DEMAND_WAIT_MS, or if its lease expires
   * after that.
   */
  poll(submissionId: string, now: number): Promise<OnDemandResult> {
    const existing = this.#open.get(submissionId);
    if (existing) return existing.result;
    const refusal = this.#refusalOf(now);
    if (refusal) return Promise.resolve(refusal);
    return this.#begin(submissionId);
  }

  /** Returns the next submission to poll now, and charges the budget; undefined: none. */
  take(now: number): string | undefined {
    for (const submissionId of this.#waiting) {
      const state = this.#scheduler.pollNow(submissionId, now);
      if (state === 'wait') return undefined;
      this.#waiting.delete(submissionId);
      if (state === 'sent') return submissionId;
    }
    return undefined;
  }

  /** Returns why a poll must not wait for the request budget; undefined if it may. */
  #refusalOf(now: number): Failure | undefined {
    const { health } = this.#scheduler;
    if (this.#scheduler.inFlight === 0) health.probeForCaller(now);
    const pollAt = this.#scheduler.nextPollAt();
    const waitMs = pollAt === Number.POSITIVE_INFINITY ? 0 : Math.max(0, pollAt - now);
    // During an outage no caller waits: a request becomes the due probe or fails.
    if (!health.isUp && (waitMs > 0 || this.isWaiting))
      return failed('upstream', UPSTREAM_DOWN, waitMs);
    if (waitMs > MAX_ON_DEMAND_WAIT_MS || this.#waiting.size >= MAX_WAITING)
      return failed('busy', BUDGET_EXHAUSTED, waitMs);
    return undefined;
  }

  #begin(submissionId: string): Promise<OnDemandResult> {
    const { promise, resolve } = Promise.withResolvers<OnDemandResult>();
    let cancelTimer = this.#clock.after(ON_DEMAND_WAIT_MS, () => {
      if (this.#waiting.has(submissionId)) {
        const error = this.#isLedgerAvailable() ? BUDGET_EXHAUSTED : LEDGER_UNAVAILABLE;
        complete(failed('busy', error, ON_DEMAND_WAIT_MS));
      } else
        cancelTimer = this.#clock.after(this.#scheduler.leaseMs, () =>
          complete(failed('timeout', NO_RESPONSE, null)),
        );
    });
    const complete = (result: OnDemandResult) => {
      cancelTimer();
      this.#waiting.delete(submissionId);
      this.#open.delete(submissionId);
      resolve(result);
    };
    this.#open.set(submissionId, { result: promise, complete });
    this.#waiting.add(submissionId);
    return promise;
  }

  isOpen(submissionId: string): boolean {
    return this.#open.has(submissionId);
  }

  resolve(observation: Observation): void {
    this.#open.get(observation.submissionId)?.complete({ kind: 'observed', observation });
  }

  /** Fails the polls that wait for the request budget, if the circuit breaker is open. */
  refuseDuringOutage(now: number): void {
    const { health } = this.#scheduler;
    if (health.isUp) return;
    const retryAfterMs = Math.max(1_000, health.probeAt - now);
    for (const submissionId of [...this.#waiting])
      this.#open.get(submissionId)?.complete(failed('upstream', UPSTREAM_DOWN, retryAfterMs));
  }

  close(): void {
    for (const { complete } of [...this.#open.values()]) complete(NOT_POLLING);
  }
}

export type LookupResult =
  | { kind: 'envelope'; text: string }
  | { kind: 'not_found'; error: string }
  /** The upstream refuses the id. */
  | { kind: 'rejected'; error: string }
  | Failure;

type CachedLookupDeps = {
  get: (submissionId: string) => Submission | undefined;
  pollOnDemand: (upstream: string, submissionId: string) => Promise<OnDemandResult>;
  now: () => number;
};

/**
 * Age of an observation that replaces a poll: callers that poll each second cost half a request.
 */
const MAX_AGE_MS = 2_000;

/**
 * Finalized submissions come from the ledger, recently observed ones from memory; concurrent
 * lookups share one on-demand poll.
 */
export class CachedLookup {
  readonly #deps: CachedLookupDeps;
  readonly #recent = new Map<string, Observation>();

  constructor(deps: CachedLookupDeps) {
    this.#deps = deps;
  }

  /** Adds a committed observation, unless it only reports a failure of the upstream. */
  add(observation: Observation): void {
    const { kind, submissionId } = observation;
    if (kind === 'unavailable' || kind === 'unauthorized' || kind === 'throttled') return;
    this.#recent.delete(submissionId);
    this.#recent.set(submissionId, observation);
    for (const [id, old] of this.#recent) {
      if (this.#isRecent(old)) break;
      this.#recent.delete(id);
    }
  }

  /** `upstream`: only for a submission that is not tracked. */
  async lookUp(id: string, upstream: string): Promise<LookupResult> {
    const { get, pollOnDemand } = this.#deps;
    const submission = get(id);
    const submissionId = submission?.submissionId ?? canonicalId(id);
    if (submission?.status === Status.finalized && submission.envelope !== null) {
      storedData(submission.envelope, `the history of ${submissionId}`);
      return { kind: 'envelope', text: submission.envelope };
    }
    const recent = this.#recent.get(submissionId);
    if (recent && this.#isRecent(recent)) return fromObservation(recent);
    const result = await pollOnDemand(submission?.upstream ?? upstream, submissionId);
    return result.kind === 'observed' ? fromObservation(result.observation) : result;
  }

  #isRecent({ at }: Observation): boolean {
    return at > this.#deps.now() - MAX_AGE_MS;
  }
}

function fromObservation(observation: Observation): LookupResult {
  switch (observation.kind) {
    case 'pending':
    case 'finalized':
    case 'error':
      return { kind: 'envelope', text: observation.envelope };
    case 'not_found':
    case 'rejected':
      return { kind: observation.kind, error: observation.error };
    case 'unauthorized':
      // Not quoted: it concerns the credentials of this server.
      return failed('upstream', 'the upstream refuses the credentials of this server', null);
    case 'throttled':
      return failed(
        'upstream',
        'the upstream allows no more requests at the moment',
        observation.retryAfterMs,
      );
    case 'unavailable':
      return observation.reason === 'timeout'
        ? failed('timeout', NO_RESPONSE, observation.retryAfterMs)
        : failed(
            'upstream',
            `the upstream did not respond as expected (${observation.reason})`,
            observation.retryAfterMs,
          );
    default:
      return observation satisfies never;
  }
}

function failed(reason: Failure['reason'], error: string, retryAfterMs: number | null): Failure {
  return { kind: 'failed', reason, error, retryAfterMs };
}
