import { type Observation, sameData } from './classify.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from './event-types.ts';
import { type ChainResult, canRetrack, isFinal, Status, type Submission } from './submission.ts';
import { isSeen } from './upstream.ts';

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
  watched: boolean;
  /** It has just exceeded `stuckAt`. This changes neither status nor history. */
  becameStuck: boolean;
  /** The change is the first one in which the chain contradicts this block. */
  becameContradicted: boolean;
  /** It would be unknown if the upstream proved that its database works. */
  needsProof: boolean;
  /** Since when the upstream has not found it; see Submission. */
  notFoundSince: number | null;
};

/** What a transition depends on besides the submission and the input. Times are epoch ms. */
export type TransitionContext = {
  now: number;
  /** End of the last outage of the upstream; "not found" during it does not count. */
  upSince: number;
  /** When the upstream last proved that its database works; Infinity: nothing can prove it yet. */
  provenAt: number;
  recheck: boolean;
};

const WITHOUT_UPSTREAM = {
  upSince: Number.NEGATIVE_INFINITY,
  provenAt: Number.POSITIVE_INFINITY,
  recheck: false,
};

export function contextOfRequest(now: number): TransitionContext {
  return { now, ...WITHOUT_UPSTREAM };
}

/**
 * `verified`: what the chain says about the newest response; null: it is not verified. `isHeld`: a
 * required confirmation is missing. `reason`: why no answer of the upstream decides.
 */
export type TransitionInput =
  | Observation
  | { kind: 'verified'; at: number; chain: ChainResult | null; isHeld: boolean }
  | { kind: 'deadline'; at: number; reason: string }
  | { kind: 'cancel'; at: number }
  | { kind: 'retrack'; at: number };

/** Computes all statuses: a pure function of the submission, the input and the context. */
export function transition(
  submission: Submission,
  input: TransitionInput,
  context: TransitionContext,
): TransitionResult {
  if (input.kind === 'retrack') return retrack(submission);
  const unaffected = {
    becameStuck: false,
    becameContradicted: false,
    needsProof: false,
    notFoundSince: notFoundSinceAfter(submission, input),
  };
  const result = isFinal(submission.status)
    ? { ...unaffected, ...correct(submission, input, context) }
    : {
        ...unaffected,
        becameStuck: !submission.stuck && input.at >= submission.stuckAt,
        ...proceed(submission, input, context),
      };
  const { change } = result;
  if (!change) return result;
  const becameContradicted = isNewlyContradicted(submission, change);
  const becameStuck = result.becameStuck && !isFinal(change.status);
  return { ...result, becameStuck, becameContradicted };
}

function retrack(submission: Submission): TransitionResult {
  if (!canRetrack(submission.status)) return staleResult(submission);
  const change = {
    status: Status.tracking,
    upstreamState: null,
    error: null,
    envelope: null,
    chain: null,
    event: Event.retracked,
  };
  return { ...staleResult(submission), change, watched: true, notFoundSince: null };
}

type ObservedInput = Exclude<TransitionInput, { kind: 'retrack' }>;

type Next = Partial<TransitionResult> & { change: Change | null; watched: boolean };

function proceed(submission: Submission, input: ObservedInput, context: TransitionContext): Next {
  switch (input.kind) {
    case 'cancel':
      return ended(submission, Status.cancelled);
    case 'deadline':
      return isOverdue(submission, input)
        ? endedAtDeadline(submission, input.reason)
        : unchanged(submission);
    case 'finalized':
      if (input.isHeld) return stayedOpen(submission, input);
      return {
        change: seen(submission, input, Status.finalized, Event.finalized),
        watched: context.recheck,
      };
    case 'verified':
      return verified(submission, input, context);
    case 'pending':
      return stayedOpen(submission, input);
    case 'error': {
      if (isOverdue(submission, input))
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
      return submission.status === Status.tracking
        ? notFound(submission, input, context)
        : unchanged(submission);
    case 'rejected':
      // An id that was found before is valid, so the refusal comes from a proxy or the like.
      return submission.status === Status.tracking
        ? ended(submission, Status.rejected, { error: input.error })
        : unchanged(submission);
    case 'unavailable':
    case 'unauthorized':
    case 'throttled':
      return unchanged(submission);
    default:
      return input satisfies never;
  }
}

/**
 * The status stays, but changed data of a finalized submission are a correction. If it is
 * rechecked, it is polled until it is Finalized again, or the deadline passes.
 */
function correct(submission: Submission, input: ObservedInput, context: TransitionContext): Next {
  const overdue = isOverdue(submission, input);
  const quiet = { change: null, watched: submission.watched && !overdue };
  if (submission.status !== Status.finalized) return { ...quiet, watched: false };
  if (input.kind === 'verified') return verified(submission, input, context);
  // Neither changes a finalized submission, nor its recheck.
  if (input.kind === 'cancel' || input.kind === 'deadline')
    return { ...quiet, watched: submission.watched };
  if (input.kind === 'not_found') return vanished(submission, input, context);
  if (input.kind !== 'finalized' && input.kind !== 'error' && input.kind !== 'pending')
    return quiet;
  const found = seen(submission, input, Status.finalized, null);
  const change = isCorrected(submission, found) ? { ...found, event: Event.corrected } : found;
  return {
    change: isNews(submission, change) ? change : null,
    watched: input.kind !== 'finalized' && context.recheck && !overdue,
  };
}

/**
 * A correction after the grace period. Until then it is polled, beyond its deadline only if it was
 * polled before and the answer is not ambiguous.
 */
function vanished(submission: Submission, input: NotFound, context: TransitionContext): Next {
  const overdue = isOverdue(submission, input);
  const absence = absenceOf(submission, input, context);
  const { error } = input;
  if (absence !== 'proven')
    return {
      change: null,
      watched: overdue ? submission.watched && !input.ambiguous : context.recheck,
      needsProof: absence === 'unproven',
    };
  const change = { ...kept(submission), upstreamState: null, error, event: Event.corrected };
  return {
    change: isNews(submission, change) ? change : null,
    watched: context.recheck && !overdue,
  };
}

function stayedOpen(submission: Submission, input: Seen): Next {
  if (isOverdue(submission, input))
    return { change: seen(submission, input, Status.expired, Event.expired), watched: false };
  const event = submission.status === Status.failing ? Event.recovered : null;
  return moved(submission, seen(submission, input, Status.pending, event));
}

/** A verdict about the newest response, which stays. Finalizes a submission that was held. */
function verified(submission: Submission, input: Verified, { recheck }: TransitionContext): Next {
  const before = chainOf(submission);
  if (before === null) return unchanged(submission);
  const isFinalized = submission.status === Status.pending && !input.isHeld;
  const change = {
    ...kept(submission),
    ...(isFinalized && { status: Status.finalized }),
    chain: isSilent(input.chain, before) ? before : input.chain,
    event: isFinalized ? Event.finalized : null,
  };
  return {
    change: isNews(submission, change) ? change : null,
    watched: isFinalized ? recheck : submission.watched,
  };
}

/** However short the grace period: an upstream shows a new submission only after some time. */
const LEAST_GRACE_MS = 120_000;

function notFound(submission: Submission, input: NotFound, context: TransitionContext): Next {
  if (isOverdue(submission, input))
    return ended(submission, Status.expired, { error: input.error });
  const absence = absenceOf(submission, input, context);
  if (absence === 'proven') return ended(submission, Status.unknown, { error: input.error });
  return { ...unchanged(submission), needsProof: absence === 'unproven' };
}

/**
 * The id is unknown when "not found" has lasted for the grace period. An ambiguous answer counts if
 * the upstream has proved meanwhile that its database works.
 */
function absenceOf(
  { notFoundSince, trackedAt, graceEndsAt, polledAt }: Submission,
  { at, ambiguous }: NotFound,
  { upSince, provenAt }: TransitionContext,
): 'new' | 'unproven' | 'proven' {
  const since = Math.max(notFoundSince ?? at, upSince);
  const graceMs = Math.max(LEAST_GRACE_MS, graceEndsAt - trackedAt);
  if (at - since < graceMs) return 'new';
  return ambiguous && provenAt < (polledAt ?? at) ? 'unproven' : 'proven';
}

/** An error that the upstream reported of the submission stays. */
function endedAtDeadline(submission: Submission, reason: string): Next {
  const status = submission.status === Status.failing ? Status.failed : Status.expired;
  return ended(submission, status, { error: submission.error ?? reason });
}

function isOverdue({ deadlineAt }: Submission, { at }: ObservedInput): boolean {
  return at >= deadlineAt;
}

function notFoundSinceAfter({ notFoundSince }: Submission, input: ObservedInput): number | null {
  if (input.kind === 'not_found') return notFoundSince ?? input.at;
  return isSeen(input) ? null : notFoundSince;
}

type Verified = Extract<TransitionInput, { kind: 'verified' }>;
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

/**
 * A verdict stays until the data change or the chain says something else about them. An open
 * submission has one only while the upstream reports it as final.
 */
function chainAfter(submission: Submission, input: Seen): ChainResult | null {
  if (input.kind !== 'finalized' && !isFinal(submission.status)) return null;
  const chain = input.kind === 'error' ? undefined : input.chain;
  const before = chainOf(submission);
  return isSilent(chain, before) && before && sameData(input.envelope, submission.envelope)
    ? before
    : (chain ?? null);
}

/** Whether the chain says nothing new: a node that prunes later withdraws no verdict. */
function isSilent(chain: ChainResult | null | undefined, before: ChainResult | null): boolean {
  if (chain?.verdict !== 'unavailable') return chain === undefined;
  return !chain.isSettled || before?.verdict !== 'unavailable';
}

function chainOf({ chain: verdict, chainReason: reason, proof }: Submission): ChainResult | null {
  return verdict && { verdict, reason, proof };
}

function isNewlyContradicted(submission: Submission, { chain, envelope }: Change): boolean {
  if (chain?.verdict !== 'contradicted') return false;
  return submission.chain !== 'contradicted' || !sameData(envelope, submission.envelope);
}

function isNews(submission: Submission, change: Change): boolean {
  return (
    change.status !== submission.status ||
    (change.chain?.verdict ?? null) !== submission.chain ||
    (change.chain?.isSettled === true && change.chain.reason !== submission.chainReason) ||
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

/** The last state, error and envelope stay, unless `news` replaces them. */
function ended(submission: Submission, status: Ended, news: Partial<Change> = {}): Next {
  const change = { ...kept(submission), status, event: Event[status], ...news };
  return { change, watched: false };
}

function kept(submission: Submission): Omit<Change, 'event'> {
  const { status, upstreamState, error, envelope } = submission;
  return { status, upstreamState, error, envelope, chain: chainOf(submission) };
}

/** Returns the fields of a submission after a change, and the event about it. */
export function stateAfter({ chain, ...change }: Change) {
  const { verdict = null, reason = null, proof = null } = chain ?? {};
  return { ...change, chain: verdict, chainReason: reason, proof };
}

/** Returns the result of an input that changes nothing, such as an outdated observation. */
export function staleResult({ watched, notFoundSince }: Submission): TransitionResult {
  return {
    change: null,
    watched,
    becameStuck: false,
    becameContradicted: false,
    needsProof: false,
    notFoundSince,
  };
}
