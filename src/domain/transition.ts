import type { Observation } from './classify.ts';
import { sameData } from './envelope.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from './notifications/events.ts';
import { isFinal, Status, type Submission } from './submission.ts';

/** What one input makes of a submission: its next row of history. */
type Change = {
  status: Status;
  upstreamState: string | null;
  error: string | null;
  envelope: string | null;
  /** What others are told of it; null where only the history takes note. */
  event: SubmissionEventType | null;
};

export type TransitionResult = {
  change: Change | null;
  /** Whether the pacer goes on asking. */
  watched: boolean;
  /** Told once: it has been open for too long. No change of status, so no history. */
  becameStuck: boolean;
  /** Since when, past its deadline, no answer about it could be believed; null: the newest one could. */
  noResponseSince: number | null;
  /** For how long "not found" has been confirmed by now. */
  notFoundMs: number | null;
};
/** In which time a response "not found" is believed, and which share of that time counts towards the grace period. */
export type NotFoundTrust = { since: number; until: number; share: number };

export const FULL_TRUST: NotFoundTrust = {
  since: Number.NEGATIVE_INFINITY,
  until: Number.POSITIVE_INFINITY,
  share: 1,
};

/** What a transition depends on beside the submission and the input. */
export type TransitionContext = {
  /** The moment of recording. */
  now: number;
  /** What the upstream's outage clock shows by now: outages and pauses. */
  outageMs: number;
  /** False while the breaker is open: then no time limit passes. */
  upstreamUp: boolean;
  /** Since when the upstream could be polled without a break: no start of this process, outage or pause came after it. */
  pollableSince: number;
  /** When "not found" is believed. */
  notFoundTrust: NotFoundTrust;
  /** Whether a finalized submission is asked about once more. */
  recheck: boolean;
};

/** The context of an input that no time limit matters to: a cancellation. */
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

/** The status machine, whole. A final status has no way out. */
const NEXT: Record<Status, readonly Status[]> = {
  tracking: ['pending', 'failing', 'finalized', 'failed', 'unknown', 'rejected', 'expired', 'cancelled'],
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

/** So long past the deadline an id is asked about in vain, while the upstream is up, before it ends without a last word. */
const LAST_WORD_MS = 5 * 60_000;
/** Two responses "not found", at least this far apart, are needed to end a submission, however short its grace period is. */
const CONFIRMED_MS = 2 * 60_000;
/** A longer interval between two polls of an id is not a choice of the pacing: the upstream's budget was exhausted, say. */
const LONGEST_INTERVAL_MS = 5 * 60_000;

export type TransitionInput = Observation | { kind: 'cancel'; at: number };

/** The one writer of statuses: a pure function of the submission, the input and the context. */
export function transition(
  submission: Submission,
  input: TransitionInput,
  context: TransitionContext,
): TransitionResult {
  const outcome = isFinal(submission.status)
    ? correct(submission, input, context)
    : {
        noResponseSince: null,
        notFoundMs: submission.notFoundMs,
        ...proceed(submission, input, context),
        becameStuck: isNewlyStuck(submission, input, context),
      };
  const { change } = outcome;
  if (change && !NEXT[submission.status].includes(change.status))
    throw new IllegalTransitionError(submission.status, change.status);
  if (change && isFinal(change.status)) return { ...outcome, becameStuck: false };
  return outcome;
}

type Next = Pick<TransitionResult, 'change' | 'watched'> & Partial<TransitionResult>;

/** What a submission would become that is still open. */
function proceed(submission: Submission, input: TransitionInput, context: TransitionContext): Next {
  switch (input.kind) {
    case 'cancel':
      return ended(submission, Status.cancelled);
    case 'finalized':
      return { change: seen(input, Status.finalized, Event.finalized), watched: context.recheck };
    case 'pending': {
      if (isPast(submission.deadlineAt, submission, input, context))
        return { change: seen(input, Status.expired, Event.expired), watched: false };
      const recovered = submission.status === Status.failing;
      return moved(submission, seen(input, Status.pending, recovered ? Event.recovered : null));
    }
    case 'error': {
      if (isPast(submission.deadlineAt, submission, input, context))
        return ended(submission, Status.failed, seen(input, Status.failed, Event.failed));
      const news = submission.status !== Status.failing;
      return moved(submission, seen(input, Status.failing, news ? Event.failing : null));
    }
    case 'not_found':
      if (submission.status !== Status.tracking) return withoutAnswer(submission, input, context);
      return notFound(submission, input, context);
    case 'rejected':
      // What was seen once has a valid id: then the refusal is the fault of something in between.
      if (submission.status !== Status.tracking) return withoutAnswer(submission, input, context);
      return ended(submission, Status.rejected, { error: input.error });
    case 'unavailable':
      return withoutAnswer(submission, input, context);
    case 'unauthorized':
    case 'throttled':
      // Neither an answer nor the lack of one.
      return { ...unchanged(submission), noResponseSince: submission.noResponseSince };
    default:
      return input satisfies never;
  }
}

/**
 * A final status never changes, but what the upstream says of a finalized submission may: that is told, never silent.
 * It is settled when it reads Finalized again; until then it is asked about, to its deadline.
 */
function correct(submission: Submission, input: TransitionInput, context: TransitionContext): TransitionResult {
  const overdue = isPast(submission.deadlineAt, submission, input, context);
  const { notFoundMs } = submission;
  const watched = submission.watched && !overdue;
  const quiet = { change: null, watched, becameStuck: false, noResponseSince: null, notFoundMs };
  if (submission.status !== Status.finalized) return { ...quiet, watched: false };
  // Nobody heard anything of it: it stays as it is, with its recheck.
  if (input.kind === 'cancel') return { ...quiet, watched: submission.watched };
  // Gone for good: there is nothing to compare with, and no use in asking again.
  if (input.kind === 'rejected' || (input.kind === 'not_found' && !input.ambiguous))
    return { ...quiet, watched: false };
  if (input.kind !== 'finalized' && input.kind !== 'error' && input.kind !== 'pending') return quiet;
  const change = seen(input, Status.finalized, Event.corrected);
  const isUnsettled = input.kind !== 'finalized' && context.recheck && !overdue;
  return { ...quiet, change: isNews(submission, change) ? change : null, watched: isUnsettled };
}

/**
 * It has never been found. It ends once "not found" has been confirmed for the whole grace period; at its deadline two
 * responses are enough, and if they cannot be believed, it ends like any id without an answer.
 */
function notFound(submission: Submission, input: NotFound, context: TransitionContext): Next {
  const notFoundMs = confirmedMs(submission, input, context);
  const isLate = isPast(submission.deadlineAt, submission, input, context);
  const graceMs = isLate ? 0 : submission.graceEndsAt - submission.trackedAt;
  const isConfirmed = notFoundMs !== null && notFoundMs >= Math.max(CONFIRMED_MS, graceMs);
  const next = isLate ? withoutAnswer(submission, input, context) : unchanged(submission);
  if (isConfirmed || next.change) return ended(submission, Status.unknown, { error: input.error });
  return { ...next, notFoundMs };
}

/**
 * For how long "not found" has been confirmed: the intervals between responses that say so. Of an interval counts what lies
 * in a time in which the id could be polled and such a response is believed; so what ends an id are responses, and never time
 * that passed without any.
 */
function confirmedMs(submission: Submission, { at }: NotFound, context: TransitionContext): number | null {
  const { notFoundMs, polledAt } = submission;
  if (!context.upstreamUp) return notFoundMs;
  const { since, until, share } = context.notFoundTrust;
  const from = Math.max(polledAt ?? at, since, context.pollableSince);
  const countedMs = Math.min(at, until) - from;
  if (notFoundMs === null) return countedMs >= 0 ? 0 : null;
  return notFoundMs + Math.floor(share * Math.min(Math.max(0, countedMs), LONGEST_INTERVAL_MS));
}

/** No believable answer about this one id. Past its deadline, and for long enough without a break, that is an end. */
function withoutAnswer(submission: Submission, input: TransitionInput, context: TransitionContext): Next {
  if (!isPast(submission.deadlineAt, submission, input, context)) return unchanged(submission);
  const noResponseSince = submission.noResponseSince ?? input.at;
  if (input.at - Math.max(noResponseSince, context.pollableSince) < LAST_WORD_MS)
    return { ...unchanged(submission), noResponseSince };
  return ended(submission, submission.status === Status.failing ? Status.failed : Status.expired);
}

function isNewlyStuck(submission: Submission, input: TransitionInput, context: TransitionContext): boolean {
  return !submission.stuck && isPast(submission.stuckAt, submission, input, context);
}

/** Every time limit moves by the outages and pauses since tracking began, and none passes during an outage. */
function isPast(limitAt: number, submission: Submission, input: TransitionInput, context: TransitionContext): boolean {
  return context.upstreamUp && input.at >= limitAt + context.outageMs - submission.outageMsBefore;
}

type NotFound = Extract<Observation, { kind: 'not_found' }>;
type Seen = Extract<Observation, { envelope: string }>;

function seen(input: Seen, status: Status, event: SubmissionEventType | null): Change {
  return { status, upstreamState: input.state, error: input.error, envelope: input.envelope, event };
}

function isNews(submission: Submission, change: Change): boolean {
  return (
    change.status !== submission.status ||
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

/** Ends it; what the upstream said last stays, unless the input says more. */
function ended(submission: Submission, status: Ended, news: Partial<Change> = {}): Next {
  const { upstreamState, error, envelope } = submission;
  return { change: { status, upstreamState, error, envelope, event: Event[status], ...news }, watched: false };
}
