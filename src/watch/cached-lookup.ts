import type { Observation } from '../domain/classify.ts';
import { readStoredData } from '../domain/stored.ts';
import { canonicalId, Status, type Submission } from '../domain/submission.ts';
import type { OnDemandResult } from './on-demand-polls.ts';

/** What a client that asks for one submission is told. */
export type LookupResult =
  /** The upstream's own envelope, the JSON text as it came. */
  | { kind: 'envelope'; text: string }
  | { kind: 'not_found'; error: string }
  /** The upstream refuses the id. */
  | { kind: 'rejected'; error: string }
  | { kind: 'failed'; reason: 'upstream' | 'timeout' | 'busy'; error: string; retryAfterMs: number | null };

export type CachedLookupDeps = {
  get: (submissionId: string) => Submission | undefined;
  pollOnDemand: (upstream: string, submissionId: string, client: string) => Promise<OnDemandResult>;
  now: () => number;
  /** The newest recorded answer is given again for so long. */
  maxAgeMs: number;
};

/**
 * Answers for the upstream, asking it as seldom as it can: a finalized submission comes from the ledger, one that was just
 * asked about from that answer, and everybody who asks for the same one at the same time shares one request.
 */
export class CachedLookup {
  readonly #deps: CachedLookupDeps;
  /** The newest answers about tracked submissions; the older half is let go at once, which costs nothing per answer. */
  #recent = new Map<string, Observation>();
  #older = new Map<string, Observation>();
  #turnedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: CachedLookupDeps) {
    this.#deps = deps;
  }

  /** Takes note of a committed answer. */
  add(observation: Observation): void {
    if (!saysSomething(observation)) return;
    this.#forgetOld();
    this.#recent.set(observation.submissionId, observation);
  }

  /** `upstream` counts only for a submission that is not tracked. `client`: by whom the upstream's budget is shared. */
  async lookUp(askedId: string, upstream: string, client: string): Promise<LookupResult> {
    const submission = this.#deps.get(askedId);
    const submissionId = submission?.submissionId ?? canonicalId(askedId);
    // One that can't be read is no answer: the upstream still has it.
    const isKept = submission?.status === Status.finalized && readStoredData(submission.envelope) !== undefined;
    if (isKept && submission.envelope !== null) return { kind: 'envelope', text: submission.envelope };
    const { now, maxAgeMs } = this.#deps;
    const recent = this.#recent.get(submissionId) ?? this.#older.get(submissionId);
    if (recent && recent.at > now() - maxAgeMs) return toAnswer(recent);
    const asked = await this.#deps.pollOnDemand(submission?.upstream ?? upstream, submissionId, client);
    return asked.kind === 'answered' ? toAnswer(asked.observation) : unanswered(asked);
  }

  #forgetOld(): void {
    const { now, maxAgeMs } = this.#deps;
    const sinceMs = now() - this.#turnedAt;
    // A clock that was set back must not keep them until it has caught up.
    if (sinceMs >= 0 && sinceMs < maxAgeMs) return;
    this.#older = this.#recent;
    this.#recent = new Map();
    this.#turnedAt = now();
  }
}

/** A failure to answer says nothing of the submission, and is not given again. */
function saysSomething({ kind }: Observation): boolean {
  return kind === 'pending' || kind === 'finalized' || kind === 'error' || kind === 'not_found' || kind === 'rejected';
}

function toAnswer(observation: Observation): LookupResult {
  switch (observation.kind) {
    case 'pending':
    case 'finalized':
    case 'error':
      return { kind: 'envelope', text: observation.envelope };
    case 'not_found':
      return { kind: 'not_found', error: observation.error };
    case 'rejected':
      return { kind: 'rejected', error: observation.error };
    case 'unauthorized':
      // Whose credential that is, and what the upstream says of it, is nothing to our caller.
      return failed('upstream', 'the upstream refuses the credentials of this server', null);
    case 'throttled':
      return failed('upstream', 'the upstream allows no more requests at the moment', observation.retryAfterMs);
    case 'unavailable':
      return observation.reason === 'timeout'
        ? failed('timeout', 'the upstream did not answer in time', observation.retryAfterMs)
        : failed(
            'upstream',
            `the upstream did not answer as it should (${observation.reason})`,
            observation.retryAfterMs,
          );
    default:
      return observation satisfies never;
  }
}

function unanswered({ reason, retryAfterMs }: Extract<OnDemandResult, { kind: 'unanswered' }>): LookupResult {
  switch (reason) {
    case 'budget':
      return failed('busy', 'the request budget of the upstream is used up at the moment', retryAfterMs);
    case 'stopping':
      return failed('busy', 'this server is stopping', retryAfterMs);
    case 'out':
      return failed('upstream', 'the upstream is out', retryAfterMs);
    case 'lost':
      return failed('timeout', 'the upstream did not answer in time', null);
    default:
      return reason satisfies never;
  }
}

function failed(reason: 'upstream' | 'timeout' | 'busy', error: string, retryAfterMs: number | null): LookupResult {
  return { kind: 'failed', reason, error, retryAfterMs };
}
