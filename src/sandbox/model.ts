import { createAgenda } from './agenda.ts';
import { createChain, type Placement } from './chain.ts';
import { createClock, nextTick } from './clock.ts';
import { digest, uuidOf } from './digest.ts';
import { drawFate, type Fate } from './fate.ts';
import type { SandboxOptions } from './options.ts';
import { type Contents, contentsOf, ROW_STATE, type Row, type RowState, settlementOf } from './row.ts';
import { createSenders } from './senders.ts';

/** The lives of all submissions: a function of the seed, the submits with their times, and the time that is asked for. */
export type Model = {
  /** Hands out a UUID at once; the row appears later. nowMs: epoch ms; a time that went backwards counts as no step. */
  submit(data: string, nowMs: number): string;
  /** What a lookup answers at nowMs: undefined while the row does not exist, or never will. */
  read(submissionId: string, nowMs: number): Row | undefined;
  /** Epoch ms from which a lookup first answered Finalized; undefined while it has not. Later changes keep it. */
  finalizedAt(submissionId: string, nowMs: number): number | undefined;
  /** Submissions that have been Finalized at least once. */
  finalizedCount(nowMs: number): number;
  /** Next instant after nowMs at which anything can change, undefined when nothing will by itself. */
  nextChangeAt(nowMs: number): number | undefined;
  /** Submissions ever handed an id. */
  readonly size: number;
};

type Submission = {
  id: string;
  submittedMs: number;
  contents: Contents;
  fate: Fate;
  /** undefined: there is no row yet. */
  state: RowState | undefined;
  error: string | null;
  attempts: number;
  placement: Placement | undefined;
  /** The transaction of a second sender in the race, which takes the first one's place in a regression. */
  rival: Placement | undefined;
  finalizedMs: number | undefined;
};

type Step =
  | { kind: 'appear' | 'queue' | 'finalize' | 'regress'; submission: Submission }
  | { kind: 'fail'; submission: Submission; error: string };

/**
 * Steps and where they lead; a sender is held from the beginning of an attempt until `fail` or `finalize`.
 *
 *     appear    the row exists, Pending             → queue
 *     queue     Pending, waits for a sender         → fail | finalize
 *     fail      Error; unless dead, at the next fallback run → queue
 *     finalize  Finalized; the first time, by fate  → regress
 *     regress   Error, and so on as after fail; or Finalized in another block
 */
export function createModel(options: SandboxOptions): Model {
  const clock = createClock(options);
  const chain = createChain(clock);
  const agenda = createAgenda<Step>();
  const senders = createSenders<Submission>({ count: options.senders, begin: beginAttempt });
  const submissions = new Map<string, Submission>();
  let reachedMs = Number.NEGATIVE_INFINITY;
  let finalizedCount = 0;

  function advance(nowMs: number): void {
    reachedMs = Math.max(reachedMs, nowMs);
    for (let due = agenda.takeDue(reachedMs); due !== undefined; due = agenda.takeDue(reachedMs)) {
      take(due.item, due.atMs);
    }
  }

  function take(step: Step, atMs: number): void {
    const { submission } = step;
    switch (step.kind) {
      case 'appear':
        write(submission, ROW_STATE.pending);
        agenda.add(firstSendAt(submission, atMs), { kind: 'queue', submission });
        return;
      case 'queue':
        write(submission, ROW_STATE.pending);
        senders.accept(submission, atMs);
        return;
      case 'fail':
        write(submission, ROW_STATE.error, step.error);
        senders.release(atMs);
        if (!submission.fate.isDead) queueAtFallback(submission, atMs);
        return;
      case 'finalize':
        write(submission, ROW_STATE.finalized);
        senders.release(atMs);
        if (submission.finalizedMs === undefined) firstFinalized(submission, atMs);
        return;
      case 'regress':
        regress(submission, atMs);
        return;
      default:
        step satisfies never;
    }
  }

  function write(submission: Submission, state: RowState, error: string | null = null): void {
    submission.state = state;
    submission.error = error;
  }

  function firstSendAt({ fate, submittedMs }: Submission, atMs: number): number {
    if (!fate.isLeftBehind) return atMs + fate.straggleMs;
    return nextTick(submittedMs + clock.pickUpMs, clock.fallbackMs) * clock.fallbackMs;
  }

  function queueAtFallback(submission: Submission, atMs: number): void {
    agenda.add(nextTick(atMs, clock.fallbackMs) * clock.fallbackMs, { kind: 'queue', submission });
  }

  function beginAttempt(submission: Submission, atMs: number): void {
    submission.attempts += 1;
    const attempt = submission.fate.nextAttempt();
    if (attempt.outcome === 'failed') {
      agenda.add(atMs + attempt.afterMs, { kind: 'fail', submission, error: attempt.error });
      return;
    }
    submission.placement = chain.include(atMs);
    if (submission.finalizedMs === undefined && submission.fate.regression === 'replaced') {
      submission.rival = chain.includeIn(submission.placement.blockNumber + 1);
    }
    agenda.add(submission.placement.finalMs, { kind: 'finalize', submission });
  }

  function firstFinalized(submission: Submission, atMs: number): void {
    submission.finalizedMs = atMs;
    finalizedCount += 1;
    if (submission.fate.regression === 'none') return;
    const rivalFinalMs = submission.rival?.finalMs ?? atMs;
    agenda.add(Math.max(atMs + clock.regressAfterMs, rivalFinalMs), { kind: 'regress', submission });
  }

  function regress(submission: Submission, atMs: number): void {
    if (submission.rival === undefined) {
      write(submission, ROW_STATE.error, 'Transaction was not found in the finalized block');
      queueAtFallback(submission, atMs);
      return;
    }
    submission.placement = submission.rival;
    submission.attempts += 1;
    write(submission, ROW_STATE.finalized);
  }

  function rowOf(submission: Submission, state: RowState): Row {
    const { id, error, submittedMs, contents, attempts, placement } = submission;
    const row: Row = {
      submissionId: id,
      state,
      error,
      createdAtMs: submittedMs,
      amountBytes: contents.amountBytes,
      attempts,
    };
    if (state !== ROW_STATE.finalized || placement === undefined) return row;
    return { ...row, ...settlementOf({ seed: options.seed, submissionId: id, attempts }, placement, contents) };
  }

  return {
    submit(data, nowMs) {
      advance(nowMs);
      const ordinal = submissions.size;
      // The time is part of the id: a restarted sandbox must not hand out ids that its clients have seen finalized.
      const id = uuidOf(digest('submission', options.seed, ordinal, reachedMs));
      const submission: Submission = {
        id,
        submittedMs: reachedMs,
        contents: contentsOf(data),
        fate: drawFate(options, clock, ordinal),
        state: undefined,
        error: null,
        attempts: 0,
        placement: undefined,
        rival: undefined,
        finalizedMs: undefined,
      };
      submissions.set(id, submission);
      if (!submission.fate.isLost) {
        agenda.add(reachedMs + submission.fate.rowDelayMs, { kind: 'appear', submission });
      }
      return id;
    },
    read(submissionId, nowMs) {
      advance(nowMs);
      const submission = submissions.get(submissionId);
      return submission?.state === undefined ? undefined : rowOf(submission, submission.state);
    },
    finalizedAt(submissionId, nowMs) {
      advance(nowMs);
      return submissions.get(submissionId)?.finalizedMs;
    },
    finalizedCount(nowMs) {
      advance(nowMs);
      return finalizedCount;
    },
    nextChangeAt(nowMs) {
      advance(nowMs);
      return agenda.nextAt();
    },
    get size() {
      return submissions.size;
    },
  };
}
