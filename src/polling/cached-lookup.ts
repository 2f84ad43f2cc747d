import type { Observation } from '../submissions/classify.ts';
import { canonicalId, Status, type Submission } from '../submissions/submission.ts';
import type { OnDemandFailure, OnDemandResult } from './on-demand-polls.ts';

export type LookupResult =
  /** The upstream's own envelope: the unchanged JSON text. */
  | { kind: 'envelope'; text: string }
  | { kind: 'not_found'; error: string }
  /** The upstream refuses the id. */
  | { kind: 'rejected'; error: string }
  | { kind: 'failed'; reason: FailureReason; error: string; retryAfterMs: number | null };

type FailureReason = 'upstream' | 'timeout' | 'busy';

type CachedLookupDeps = {
  get: (submissionId: string) => Submission | undefined;
  pollOnDemand: (upstream: string, submissionId: string) => Promise<OnDemandResult>;
  now: () => number;
};

/**
 * How long a recorded observation is returned instead of a new poll: callers that poll each second
 * then cost one request in two seconds.
 */
const MAX_AGE_MS = 2_000;

/**
 * Looks submissions up with as few requests to the upstream as possible. A finalized submission
 * comes from the ledger, a recently observed one from memory; concurrent lookups of the same
 * submission share one on-demand poll.
 */
export class CachedLookup {
  readonly #deps: CachedLookupDeps;
  /** Oldest first. */
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
    if (submission?.status === Status.finalized && submission.envelope !== null)
      return { kind: 'envelope', text: submission.envelope };
    const recent = this.#recent.get(submissionId);
    if (recent && this.#isRecent(recent)) return fromObservation(recent);
    const result = await pollOnDemand(submission?.upstream ?? upstream, submissionId);
    return result.kind === 'observed' ? fromObservation(result.observation) : fromFailure(result);
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
      // The response is not quoted: it concerns the credentials of this server, not those of the
      // caller.
      return failed('upstream', 'the upstream refuses the credentials of this server', null);
    case 'throttled':
      return failed(
        'upstream',
        'the upstream allows no more requests at the moment',
        observation.retryAfterMs,
      );
    case 'unavailable':
      return observation.reason === 'timeout'
        ? failed('timeout', 'the upstream did not respond in time', observation.retryAfterMs)
        : failed(
            'upstream',
            `the upstream did not respond as expected (${observation.reason})`,
            observation.retryAfterMs,
          );
    default:
      return observation satisfies never;
  }
}

const FAILURES: Record<OnDemandFailure, [FailureReason, string]> = {
  budget_exhausted: ['busy', 'the request budget of the upstream is exhausted at the moment'],
  ledger_unavailable: [
    'busy',
    'the ledger cannot be written at the moment, and nothing is polled until then',
  ],
  not_polling: ['busy', 'this server is starting or stopping'],
  upstream_down: ['upstream', 'the upstream is down'],
  no_response: ['timeout', 'the upstream did not respond in time'],
};

function fromFailure({
  reason,
  retryAfterMs,
}: Extract<OnDemandResult, { kind: 'failed' }>): LookupResult {
  return failed(...FAILURES[reason], reason === 'no_response' ? null : retryAfterMs);
}

function failed(reason: FailureReason, error: string, retryAfterMs: number | null): LookupResult {
  return { kind: 'failed', reason, error, retryAfterMs };
}
