import type { ChainResult } from './chain-verdict.ts';
import { type Observation, sameData } from './classify.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from './event-types.ts';
import { canRetrack, isFinal, Status, type Submission } from './submission.ts';
import { isSeen } from './upstream.ts';

/** The next history row of a submission. */
type Change = {
  status: Status;
  upstreamState: string | null;
  error: string | null;
  envelope: string | null;
  /** What the chain says about the block in the envelope; null: it was not verified. */
  chain: ChainResult | null;
  /** The event to send; null: only the history records the change. */
  event: SubmissionEventType | null;
};

export type TransitionResult = {
  change: Change | null;
  /** Whether it is polled again. */
  watched: boolean;
  /** It has just exceeded `stuckAt`. This changes neither status nor history. */
  becameStuck: boolean;
  /** The change is the first one in which the chain contradicts this block. */
  becameContradicted: boolean;
  /**
   * Since when, after the deadline, no response about it could be trusted; null: the newest one
   * could.
   */
  noResponseSince: number | null;
  /** For how long trusted responses have confirmed "not found". */
  notFoundMs: number | null;
  /** Since when the upstream has not found it; see Submission. */
  notFoundSince: number | null;
};
/**
 * The period in which "not found" is trusted, and the share of that time that counts towards the
 * grace period.
 */
export type NotFoundTrust = { since: number; until: number; share: number };

export const FULL_TRUST: NotFoundTrust = {
  since: Number.NEGATIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
  share: 1,
};

/** What a transition depends on besides the submission and the input. */
export type TransitionContext = {
  /** The time of recording. */
  now: number;
  /** Total duration of the upstream's outages and pauses. */
  outageMs: number;
  /** False while the circuit breaker is open: no time limit passes. */
  upstreamUp: boolean;
  /**
   * End of the last outage, pause or start of this process: since then the upstream could be polled
   * without a break.
   */
  pollableSince: number;
  /** When "not found" is trusted. */
  notFoundTrust: NotFoundTrust;
  /** Whether a finalized submission is polled once more. */
  recheck: boolean;
};

/** The context of a client's request, to which time limits do not apply. */
export function contextWithoutLimits(now: number): TransitionContext {
  return {
    now,
    outageMs: 0,
    upstreamUp: true,
    pollableSince: Number.NEGATIVE_INFINITY,
    notFoundTrust: FULL_TRUST,
    recheck: false,
  };
}

/**
 * All allowed transitions, except those of a retrack: only that leaves a final status, and none
 * leaves finalized.
 */
const NEXT: Record<Status, readonly Status[]> = {
  tracking: [
    'pending',
    'failing',
    'finalized',
    'failed',
    'unknown',
    'rejected',
    'expired',
    'cancelled',
  ],
  pending: ['pending', 'failing', 'finalized', 'failed', 'expired', 'cancelled'],
  failing: ['failing', 'pending', 'finalized', 'failed', 'expired', 'cancelled'],
  finalized: ['finalized'],
  failed: [],
  unknown: [],
  rejected: [],
  expired: [],
  cancelled: [],
};

class IllegalTransitionError extends Error {
  override readonly name = 'IllegalTransitionError';
  readonly from: Status;
  readonly to: Status;
  constructor(from: Status, to: Status) {
    super(`a submission cannot go from ${from} to ${to}`);
    this.from = from;
    this.to = to;
  }
}

/**
 * After a deadline that passed while nothing could be polled, an id without a trusted response ends
 * when it has been polled for this long while the upstream is up.
 */
const LAST_RESPONSE_MS = 5 * 60_000;
/**
 * Minimum time between two responses "not found" that end a submission, however short its grace
 * period is.
 */
const CONFIRMED_MS = 2 * 60_000;
/**
 * Upper limit of a counted interval between two polls: longer intervals have other causes, such as
 * an exhausted budget.
 */
const LONGEST_INTERVAL_MS = 5 * 60_000;

/**
 * The cause of a transition: an observation, the deadline, or a client that cancels the submission
 * or tracks it again. `lastFailure`: the newest responses, if they say nothing about the
 * submission.
 */
export type TransitionInput =
  | Observation
  | { kind: 'deadline'; at: number; lastFailure?: string | null }
  | { kind: 'cancel'; at: number }
  | { kind: 'retrack'; at: number };

/** Computes all statuses: a pure function of the submission, the input and the context. */
export function transition(
  submission: Submission,
  input: TransitionInput,
  context: TransitionContext,
): TransitionResult {
  if (input.kind === 'retrack') return retrack(submission);
  const notFoundSince = notFoundSinceAfter(submission, input);
  const result = isFinal(submission.status)
    ? { ...correct(submission, input, context), notFoundSince, becameContradicted: false }
    : {
        noResponseSince: null,
        notFoundMs: submission.notFoundMs,
        notFoundSince,
        ...proceed(submission, input, context),
        becameStuck: isNewlyStuck(submission, input, context),
        becameContradicted: false,
      };
  const { change } = result;
  if (change && !NEXT[submission.status].includes(change.status))
    throw new IllegalTransitionError(submission.status, change.status);
  if (!change) return result;
  const becameContradicted = isNewlyContradicted(submission, change);
  const becameStuck = result.becameStuck && !isFinal(change.status);
  return { ...result, becameStuck, becameContradicted };
}

/** Tracks an ended submission again. An open or finalized submission is unchanged. */
function retrack({
  status,
  watched,
  noResponseSince,
  notFoundMs,
  notFoundSince,
}: Submission): TransitionResult {
  if (!canRetrack(status))
    return {
      change: null,
      watched,
      becameStuck: false,
      becameContradicted: false,
      noResponseSince,
      notFoundMs,
      notFoundSince,
    };
  const change = {
    status: Status.tracking,
    upstreamState: null,
    error: null,
    envelope: null,
    chain: null,
    event: Event.retracked,
  };
  return {
    change,
    watched: true,
    becameStuck: false,
    becameContradicted: false,
    noResponseSince: null,
    notFoundMs: null,
    notFoundSince: null,
  };
}

type ObservedInput = Exclude<TransitionInput, { kind: 'retrack' }>;

type Next = Partial<TransitionResult> & { change: Change | null; watched: boolean };

/** The transition of an open submission. */
function proceed(submission: Submission, input: ObservedInput, context: TransitionContext): Next {
  switch (input.kind) {
    case 'cancel':
      return ended(submission, Status.cancelled);
    case 'deadline':
      return endedAtDeadline(submission, input.lastFailure);
    case 'finalized':
      return {
        change: seen(submission, input, Status.finalized, Event.finalized),
        watched: context.recheck || input.chain?.verdict === 'contradicted',
      };
    case 'pending': {
      if (isOverdue(submission, input, context))
        return { change: seen(submission, input, Status.expired, Event.expired), watched: false };
      const recovered = submission.status === Status.failing;
      return moved(
        submission,
        seen(submission, input, Status.pending, recovered ? Event.recovered : null),
      );
    }
    case 'error': {
      if (isOverdue(submission, input, context))
        return ended(
          submission,
          Status.failed,
          seen(submission, input, Status.failed, Event.failed),
        );
      const news = submission.status !== Status.failing;
      return moved(
        submission,
        seen(submission, input, Status.failing, news ? Event.failing : null),
      );
    }
    case 'not_found':
      if (submission.status !== Status.tracking) return withoutResponse(submission, input, context);
      return notFound(submission, input, context);
    case 'rejected':
      // An id that was found before is valid, so the refusal comes from a proxy or the like.
      if (submission.status !== Status.tracking) return withoutResponse(submission, input, context);
      return ended(submission, Status.rejected, { error: input.error });
    case 'unavailable':
      return withoutResponse(submission, input, context);
    case 'unauthorized':
    case 'throttled':
      // Neither a response about the submission nor the lack of one.
      return { ...unchanged(submission), noResponseSince: submission.noResponseSince };
    default:
      return input satisfies never;
  }
}

/**
 * The transition of a final submission. The status never changes, but the upstream may change the
 * data of a finalized submission, which is reported as a correction. It is polled until the
 * upstream reports Finalized again, of a block that the chain does not contradict, or the deadline
 * passes.
 */
function correct(
  submission: Submission,
  input: ObservedInput,
  context: TransitionContext,
): Omit<TransitionResult, 'notFoundSince' | 'becameContradicted'> {
  const overdue = isOverdue(submission, input, context);
  const { notFoundMs } = submission;
  const watched = submission.watched && !overdue;
  const quiet = { change: null, watched, becameStuck: false, noResponseSince: null, notFoundMs };
  if (submission.status !== Status.finalized) return { ...quiet, watched: false };
  // Neither changes a finalized submission, nor its recheck.
  if (input.kind === 'cancel' || input.kind === 'deadline')
    return { ...quiet, watched: submission.watched };
  // The upstream has deleted it: there is nothing to compare, and no reason to poll again.
  if (input.kind === 'rejected' || (input.kind === 'not_found' && !input.ambiguous))
    return { ...quiet, watched: false };
  if (input.kind !== 'finalized' && input.kind !== 'error' && input.kind !== 'pending')
    return quiet;
  const found = seen(submission, input, Status.finalized, null);
  const change = isCorrected(submission, found) ? { ...found, event: Event.corrected } : found;
  const isUnsettled =
    (input.kind !== 'finalized' && context.recheck) || found.chain?.verdict === 'contradicted';
  return {
    ...quiet,
    change: isNews(submission, change) ? change : null,
    watched: isUnsettled && !overdue,
  };
}

/**
 * The transition of a submission that has never been found. It ends when "not found" has been
 * confirmed for the whole grace period. After the deadline one response suffices, unless it cannot
 * be trusted.
 */
function notFound(submission: Submission, input: NotFound, context: TransitionContext): Next {
  if (isOverdue(submission, input, context))
    return input.ambiguous && input.at > context.notFoundTrust.until
      ? withoutResponse(submission, input, context)
      : ended(submission, Status.expired, { error: input.error });
  const notFoundMs = confirmedMs(submission, input, context);
  const graceMs = Math.max(CONFIRMED_MS, submission.graceEndsAt - submission.trackedAt);
  if (notFoundMs !== null && notFoundMs >= graceMs)
    return ended(submission, Status.unknown, { error: input.error });
  return { ...unchanged(submission), notFoundMs };
}

/**
 * Returns for how long "not found" has been confirmed: the sum of the intervals between such
 * responses. Only time in which the id could be polled and the response is trusted counts, so that
 * an id never ends because of time without responses.
 */
function confirmedMs(
  submission: Submission,
  { at }: NotFound,
  context: TransitionContext,
): number | null {
  const { notFoundMs, polledAt } = submission;
  if (!context.upstreamUp) return notFoundMs;
  const { since, until, share } = context.notFoundTrust;
  const from = Math.max(polledAt ?? at, since, context.pollableSince);
  const countedMs = Math.min(at, until) - from;
  if (notFoundMs === null) return countedMs >= 0 ? 0 : null;
  return notFoundMs + Math.floor(share * Math.min(Math.max(0, countedMs), LONGEST_INTERVAL_MS));
}

/**
 * The transition without a trusted response: ends the submission after LAST_RESPONSE_MS past its
 * deadline.
 */
function withoutResponse(
  submission: Submission,
  input: ObservedInput,
  context: TransitionContext,
): Next {
  if (!isOverdue(submission, input, context)) return unchanged(submission);
  const noResponseSince = submission.noResponseSince ?? input.at;
  if (input.at - Math.max(noResponseSince, context.pollableSince) < LAST_RESPONSE_MS)
    return { ...unchanged(submission), noResponseSince };
  return endedAtDeadline(submission, 'error' in input ? input.error : null);
}

/** An error that the upstream reported of the submission stays. */
function endedAtDeadline(submission: Submission, lastFailure: string | null = null): Next {
  const status = submission.status === Status.failing ? Status.failed : Status.expired;
  return ended(submission, status, { error: submission.error ?? lastFailure });
}

function isNewlyStuck(
  submission: Submission,
  input: ObservedInput,
  context: TransitionContext,
): boolean {
  const stuckAt = submission.stuckAt + context.outageMs - submission.outageMsBefore;
  return !submission.stuck && context.upstreamUp && input.at >= stuckAt;
}

/**
 * The deadline moves by the outages and pauses since it was set. It does not pass during an outage.
 */
function isOverdue(
  submission: Submission,
  input: ObservedInput,
  context: TransitionContext,
): boolean {
  return context.upstreamUp && input.at >= extendedDeadline(submission, context.outageMs);
}

/**
 * Returns the deadline of an open submission with its extension. `outageMs`: the reading of the
 * upstream's outage clock.
 */
export function extendedDeadline(
  submission: Pick<Submission, 'deadlineAt' | 'outageMsBefore' | 'deadlineOutageMsBefore'>,
  outageMs: number,
): number {
  const { deadlineAt, outageMsBefore, deadlineOutageMsBefore } = submission;
  return deadlineAt + outageMs - (deadlineOutageMsBefore ?? outageMsBefore);
}

function notFoundSinceAfter({ notFoundSince }: Submission, input: ObservedInput): number | null {
  if (input.kind === 'not_found') return notFoundSince ?? input.at;
  const isObserved = input.kind !== 'cancel' && input.kind !== 'deadline';
  return isObserved && isSeen(input) ? null : notFoundSince;
}

type NotFound = Extract<Observation, { kind: 'not_found' }>;
type Seen = Extract<Observation, { envelope: string }>;

function seen(
  submission: Submission,
  input: Seen,
  status: Status,
  event: SubmissionEventType | null,
): Change {
  return {
    status,
    chain: chainAfter(submission, input),
    upstreamState: input.state,
    error: input.error,
    envelope: input.envelope,
    event,
  };
}

/** A verdict stays until the data change or the chain says something else about them. */
function chainAfter(submission: Submission, input: Seen): ChainResult | null {
  const chain = input.kind === 'error' ? undefined : input.chain;
  const isSilent = chain === undefined || chain.verdict === 'unavailable';
  const before = chainOf(submission);
  return isSilent && before && sameData(input.envelope, submission.envelope)
    ? before
    : (chain ?? null);
}

function chainOf({ chain: verdict, chainReason: reason }: Submission): ChainResult | null {
  return verdict && { verdict, reason };
}

function isNewlyContradicted(submission: Submission, { chain, envelope }: Change): boolean {
  if (chain?.verdict !== 'contradicted') return false;
  return submission.chain !== 'contradicted' || !sameData(envelope, submission.envelope);
}

function isNews(submission: Submission, change: Change): boolean {
  return (
    change.status !== submission.status ||
    (change.chain?.verdict ?? null) !== submission.chain ||
    isCorrected(submission, change)
  );
}

function isCorrected(submission: Submission, change: Change): boolean {
  return (
    change.upstreamState !== submission.upstreamState ||
    change.error !== submission.error ||
    !sameData(change.envelope, submission.envelope)
  );
}

function moved(submission: Submission, change: Change): Next {
  return { change: isNews(submission, change) ? change : null, watched: true };
}

function unchanged(submission: Submission): Next {
  return { change: null, watched: submission.watched };
}

type Ended = 'failed' | 'unknown' | 'rejected' | 'expired' | 'cancelled';

/**
 * Ends the submission. The upstream's last state, error and envelope stay, unless `news` replaces
 * them.
 */
function ended(submission: Submission, status: Ended, news: Partial<Change> = {}): Next {
  const { upstreamState, error, envelope } = submission;
  return {
    change: {
      ...{ status, upstreamState, error, envelope, chain: chainOf(submission) },
      event: Event[status],
      ...news,
    },
    watched: false,
  };
}

/** Returns the fields of a submission after a change, and the event about it. */
export function stateAfter({ chain, ...change }: Change) {
  return { ...change, chain: chain?.verdict ?? null, chainReason: chain?.reason ?? null };
}

/** Returns the result of an observation that is older than the submission: nothing changes. */
export function staleResult(submission: Submission): TransitionResult {
  const { watched, noResponseSince, notFoundMs, notFoundSince } = submission;
  const kept = { watched, noResponseSince, notFoundMs, notFoundSince };
  return { change: null, becameStuck: false, becameContradicted: false, ...kept };
}
