import type { Observation } from './classify.ts';
import { sameData } from './envelope.ts';
import { SubmissionEventType as Event, type SubmissionEventType } from './events.ts';
import { isFinal, Status, type Submission } from './submission.ts';

/** What one input makes of a submission: its next row of history. */
type Change = {
  status: Status;
  upstreamState: string | null;
  error: string | null;
  answer: string | null;
  /** What others are told of it; null where only the history takes note. */
  event: SubmissionEventType | null;
};

export type Outcome = {
  change: Change | null;
  /** Whether the pacer goes on asking. */
  watched: boolean;
  /** Told once: it has been open for too long. No change of status, so no history. */
  becameStuck: boolean;
  /** Since when, past its deadline, no answer about it could be believed; null: the newest one could. */
  unansweredSince: number | null;
};

/** What a transition depends on beside the submission and the input. */
export type TransitionContext = {
  /** The moment of recording. */
  now: number;
  /** How long the upstream has been out, in total, by now. */
  outageMs: number;
  /** False while the breaker is open: then no time limit passes. */
  upstreamUp: boolean;
  /** Whether a finalized submission is asked about once more. */
  recheck: boolean;
};

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

export type Input = Observation | { kind: 'cancel'; at: number };

/** The one writer of statuses: a pure function of the submission, the input and the context. */
export function transition(submission: Submission, input: Input, context: TransitionContext): Outcome {
  const outcome = isFinal(submission.status)
    ? correct(submission, input, context)
    : {
        unansweredSince: null,
        ...proceed(submission, input, context),
        becameStuck: isNewlyStuck(submission, input, context),
      };
  const { change } = outcome;
  if (change && !NEXT[submission.status].includes(change.status))
    throw new IllegalTransitionError(submission.status, change.status);
  if (change && isFinal(change.status)) return { ...outcome, becameStuck: false };
  return outcome;
}

type Next = Pick<Outcome, 'change' | 'watched'> & Partial<Outcome>;

/** What a submission would become that is still open. */
function proceed(submission: Submission, input: Input, context: TransitionContext): Next {
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
      return isPast(Math.min(submission.graceEndsAt, submission.deadlineAt), submission, input, context)
        ? ended(submission, Status.unknown, { error: input.error })
        : unchanged(submission);
    case 'rejected':
      // What was seen once has a valid id: then the refusal is the fault of something in between.
      if (submission.status !== Status.tracking) return withoutAnswer(submission, input, context);
      return ended(submission, Status.rejected, { error: input.error });
    case 'unavailable':
      return withoutAnswer(submission, input, context);
    case 'unauthorized':
    case 'throttled':
      // Neither an answer nor the lack of one.
      return { ...unchanged(submission), unansweredSince: submission.unansweredSince };
    default:
      return input satisfies never;
  }
}

/**
 * A final status never changes, but what the upstream says of a finalized submission may: that is told, never silent.
 * It is settled when it reads Finalized again; until then it is asked about, to its deadline.
 */
function correct(submission: Submission, input: Input, context: TransitionContext): Outcome {
  const overdue = isPast(submission.deadlineAt, submission, input, context);
  const quiet = { change: null, watched: submission.watched && !overdue, becameStuck: false, unansweredSince: null };
  if (submission.status !== Status.finalized) return { ...quiet, watched: false };
  // Nobody heard anything of it: it stays as it is, with its recheck.
  if (input.kind === 'cancel') return { ...quiet, watched: submission.watched };
  // Gone for good: there is nothing to compare with, and no use in asking again.
  if (input.kind === 'rejected' || (input.kind === 'not_found' && !input.ambiguous))
    return { ...quiet, watched: false };
  if (input.kind !== 'finalized' && input.kind !== 'error' && input.kind !== 'pending') return quiet;
  const change = seen(input, Status.finalized, Event.corrected);
  const watched = input.kind !== 'finalized' && context.recheck && !overdue;
  return { ...quiet, change: isNews(submission, change) ? change : null, watched };
}

/** No believable answer about this one id. Past its deadline, and for long enough without a break, that is an end. */
function withoutAnswer(submission: Submission, input: Input, context: TransitionContext): Next {
  if (!isPast(submission.deadlineAt, submission, input, context)) return unchanged(submission);
  const unansweredSince = submission.unansweredSince ?? input.at;
  if (input.at - unansweredSince < LAST_WORD_MS) return { ...unchanged(submission), unansweredSince };
  return ended(submission, submission.status === Status.failing ? Status.failed : Status.expired);
}

function isNewlyStuck(submission: Submission, input: Input, context: TransitionContext): boolean {
  return !submission.stuck && isPast(submission.stuckAt, submission, input, context);
}

/** Every time limit moves by the outages since tracking began, and none passes during one. */
function isPast(limitAt: number, submission: Submission, input: Input, context: TransitionContext): boolean {
  return context.upstreamUp && input.at >= limitAt + context.outageMs - submission.outageMsBefore;
}

type Seen = Extract<Observation, { answer: string }>;

function seen(input: Seen, status: Status, event: SubmissionEventType | null): Change {
  return { status, upstreamState: input.state, error: input.error, answer: input.answer, event };
}

function isNews(submission: Submission, change: Change): boolean {
  return (
    change.status !== submission.status ||
    change.upstreamState !== submission.upstreamState ||
    change.error !== submission.error ||
    !sameData(change.answer, submission.answer)
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
  const { upstreamState, error, answer } = submission;
  return { change: { status, upstreamState, error, answer, event: Event[status], ...news }, watched: false };
}
