import { Agenda } from './chain/agenda.ts';
import { createBodies, type Placement } from './chain/bodies.ts';
import { createChain, type FinalBlock, type Head, type Heights } from './chain/chain.ts';
import { digest, uuidOf } from './chain/digest.ts';
import { createHeaders } from './chain/headers.ts';
import {
  type Contents,
  chainDataOf,
  contentsOf,
  type Included,
  ROW_STATE,
  type Row,
  type RowState,
} from './chain/row.ts';
import { createSenders } from './chain/senders.ts';
import { planSubmission, type SubmissionPlan } from './chain/submission-plan.ts';
import { createClock, nextMultiple } from './clock.ts';
import type { SandboxOptions } from './options.ts';

/**
 * The simulated submissions: a pure function of the seed, the submits with their times, and the
 * current time.
 */
export type Model = ReturnType<typeof createModel>;

type Submission = {
  id: string;
  submittedMs: number;
  contents: Contents;
  /** What sending attempts need: the plan and the submitted bytes. undefined: none will follow. */
  ahead: { fate: SubmissionPlan; data: Uint8Array } | undefined;
  /** undefined: no row yet. */
  state: RowState | undefined;
  error: string | null;
  /** The transaction that its sender waits for. */
  inFlight: Transaction | undefined;
  placement: Included | undefined;
  /** The transaction of a second sender, which replaces the first one in a regression. */
  rival: (Included & { finalMs: number }) | undefined;
  finalizedMs: number | undefined;
};

type Transaction = {
  submission: Submission;
  sentMs: number;
  rowUpdatedAt(sentMs: number, finalMs: number): number;
};

type Step =
  | { kind: 'appear' | 'queue' | 'send' | 'finalize' | 'regress'; submission: Submission }
  | { kind: 'fail'; submission: Submission; error: string }
  | { kind: 'timeout'; transaction: Transaction };

/**
 * Steps and their successors. A sender is occupied from accepting a submission until `fail`,
 * `finalize` or `timeout`.
 *
 *     appear    the row exists, Pending unless an attempt was faster; senders do not wait for it
 *     queue     Pending, waits for a sender         → send
 *     send      a transaction or a failed attempt   → final on the chain and timeout, or fail
 *     final     its block is final                  → finalize, unless that is later than the
 *               timeout
 *     timeout   none if finalized; otherwise as fail, although the transaction may still become
 *               final
 *     fail      Error; unless dead, at the next fallback run → queue
 *     finalize  Finalized; the first time, if planned → regress
 *     regress   Error, continuing as after fail; or Finalized in another block
 */
export function createModel(options: SandboxOptions) {
  const clock = createClock(options);
  const chain = createChain<Transaction>(options, clock);
  const bodies = createBodies(options.seed);
  const headers = createHeaders(options.seed, chain.firstNumber);
  const agenda = new Agenda<Step>();
  const senders = createSenders<Submission>(options, clock, (submission, beginMs) =>
    agenda.add(beginMs, { kind: 'send', submission }),
  );
  const submissions = new Map<string, Submission>();
  let reachedMs = Number.NEGATIVE_INFINITY;

  function advance(nowMs: number): void {
    reachedMs = Math.max(reachedMs, nowMs);
    for (
      let nextMs = nextChange();
      nextMs !== undefined && nextMs <= reachedMs;
      nextMs = nextChange()
    ) {
      const final = chain.takeFinal(nextMs);
      if (final !== undefined) waitForRows(final);
      const due = agenda.takeDue(nextMs);
      if (due !== undefined) apply(due.item, due.atMs);
    }
  }

  function nextChange(): number | undefined {
    const [stepMs, finalMs] = [agenda.nextAt(), chain.nextFinalAt()];
    if (stepMs === undefined || finalMs === undefined) return stepMs ?? finalMs;
    return Math.min(stepMs, finalMs);
  }

  function apply(step: Step, atMs: number): void {
    const { submission } = step.kind === 'timeout' ? step.transaction : step;
    switch (step.kind) {
      case 'appear':
        if (submission.state === undefined) write(submission, ROW_STATE.pending);
        return;
      case 'queue':
        if (submission.state !== undefined) write(submission, ROW_STATE.pending);
        senders.accept(submission, atMs);
        return;
      case 'send':
        send(submission, atMs);
        return;
      case 'timeout':
        // The transaction may still become final, but no longer updates the row.
        if (submission.inFlight === step.transaction) fail(submission, 'TIMEOUT', atMs);
        return;
      case 'fail':
        fail(submission, step.error, atMs);
        return;
      case 'finalize':
        write(submission, ROW_STATE.finalized);
        submission.inFlight = undefined;
        senders.release(submission, atMs);
        if (submission.finalizedMs === undefined) firstFinalized(submission, atMs);
        else submission.ahead = undefined;
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

  function send(submission: Submission, sentMs: number): void {
    if (submission.ahead === undefined) return;
    const { fate, data } = submission.ahead;
    const attempt = fate.nextAttempt();
    if (attempt.result === 'failed') {
      agenda.add(sentMs + attempt.afterMs, { kind: 'fail', submission, error: attempt.error });
      return;
    }
    const transaction = { submission, sentMs, rowUpdatedAt: attempt.rowUpdatedAt };
    submission.inFlight = transaction;
    submission.placement = withHash(chain.include(sentMs, transaction), data);
    if (submission.finalizedMs === undefined && fate.regression === 'replaced')
      submission.rival = withHash(chain.includeAfter(submission.placement.blockNumber), data);
    agenda.add(sentMs + clock.timeoutMs, { kind: 'timeout', transaction });
  }

  /** Adds the transaction to the header and the body of its block. */
  function withHash<P extends Placement>(placement: P, data: Uint8Array): P & Included {
    headers.add(placement.blockNumber, data);
    return { ...placement, txHash: bodies.add(placement, data) };
  }

  function waitForRows({ finalMs, transactions }: FinalBlock<Transaction>): void {
    for (const transaction of transactions) {
      const { submission, sentMs } = transaction;
      const updatedMs = transaction.rowUpdatedAt(sentMs, finalMs);
      const isInTime = submission.inFlight === transaction && updatedMs < sentMs + clock.timeoutMs;
      if (isInTime) agenda.add(updatedMs, { kind: 'finalize', submission });
    }
  }

  function fail(submission: Submission, error: string, atMs: number): void {
    write(submission, ROW_STATE.error, error);
    submission.inFlight = undefined;
    senders.release(submission, atMs);
    if (submission.ahead?.fate.isDead) submission.ahead = undefined;
    else queueAtFallback(submission, atMs);
  }

  function queueAtFallback(submission: Submission, atMs: number): void {
    agenda.add(nextMultiple(atMs, clock.fallbackMs), { kind: 'queue', submission });
  }

  function firstFinalized(submission: Submission, atMs: number): void {
    submission.finalizedMs = atMs;
    const regression = submission.ahead?.fate.regression ?? 'none';
    if (regression !== 'error') submission.ahead = undefined;
    if (regression === 'none') return;
    const rivalFinalMs = submission.rival?.finalMs ?? atMs;
    agenda.add(Math.max(atMs + clock.regressAfterMs, rivalFinalMs), {
      kind: 'regress',
      submission,
    });
  }

  function regress(submission: Submission, atMs: number): void {
    if (submission.rival === undefined) {
      write(submission, ROW_STATE.error, 'Transaction was not found in the finalized block');
      queueAtFallback(submission, atMs);
      return;
    }
    submission.placement = submission.rival;
    write(submission, ROW_STATE.finalized);
  }

  function rowOf(submission: Submission, state: RowState): Row {
    const { id, error, submittedMs, contents, placement } = submission;
    const row: Row = {
      submissionId: id,
      state,
      error,
      createdAtMs: submittedMs,
      amountBytes: contents.amountBytes,
    };
    if (state !== ROW_STATE.finalized || placement === undefined) return row;
    const blockHash = headers.hashOf(placement.blockNumber);
    return {
      ...row,
      ...chainDataOf({ seed: options.seed, submissionId: id, blockHash }, placement, contents),
    };
  }

  return {
    /**
     * Returns a UUID, or `givenId`; its row appears later. nowMs: epoch ms; a decreasing time is
     * ignored.
     */
    submit(data: string | Uint8Array, nowMs: number, givenId?: string): string {
      advance(nowMs);
      // A copy, because a small buffer may keep a larger one in memory.
      const bytes =
        typeof data === 'string' ? new TextEncoder().encode(data) : new Uint8Array(data);
      const ordinal = submissions.size;
      // The id includes the time, so that a restarted sandbox does not reuse ids that its clients
      // have seen finalized.
      const id = givenId ?? uuidOf(digest('submission', options.seed, ordinal, reachedMs));
      const fate = planSubmission(options, clock, ordinal);
      const submission: Submission = {
        id,
        submittedMs: reachedMs,
        contents: contentsOf(bytes),
        ahead: fate.isLost ? undefined : { fate, data: bytes },
        state: undefined,
        error: null,
        inFlight: undefined,
        placement: undefined,
        rival: undefined,
        finalizedMs: undefined,
      };
      submissions.set(id, submission);
      if (!fate.isLost) {
        agenda.add(reachedMs + fate.rowDelayMs, { kind: 'appear', submission });
        agenda.add(reachedMs + fate.queueDelayMs, { kind: 'queue', submission });
      }
      return id;
    },
    /** Returns the row at nowMs, or undefined if it does not exist yet or never will. */
    read(submissionId: string, nowMs: number): Row | undefined {
      advance(nowMs);
      const submission = submissions.get(submissionId);
      return submission?.state === undefined ? undefined : rowOf(submission, submission.state);
    },
    /**
     * Returns when the row first became Finalized (epoch ms), or undefined. Later changes do not
     * affect it.
     */
    finalizedAt(submissionId: string, nowMs: number): number | undefined {
      advance(nowMs);
      return submissions.get(submissionId)?.finalizedMs;
    },
    /**
     * Returns the time of the next change after nowMs, or undefined if there is none without
     * further calls.
     */
    nextChangeAt(nowMs: number): number | undefined {
      advance(nowMs);
      return nextChange();
    },
    /**
     * Returns the blocks that are final at nowMs and above a number, oldest first, also those
     * without submissions: at most the newest 1,000. The first call starts the chain, unless a
     * submission has.
     */
    heads(above: number, nowMs: number): Head[] {
      advance(nowMs);
      return chain.heads(above, reachedMs);
    },
    /** Returns when the next block becomes final after nowMs (epoch ms). */
    nextHeadAt(nowMs: number): number {
      advance(nowMs);
      return chain.nextHeadAt(reachedMs);
    },
    /** Returns the newest blocks as a node that is lagMs behind sees them. */
    heights(nowMs: number, lagMs: number): Heights {
      advance(nowMs);
      return chain.heights(reachedMs, lagMs);
    },
    /** Returns when a block was produced (epoch ms); undefined if it is none of the newest. */
    producedAt: chain.producedAt,
    /**
     * Returns the encoded extrinsics of a block that was produced; undefined if it is none of the
     * newest. They are made when they are requested.
     */
    extrinsicsOf(blockNumber: number): Uint8Array[] | undefined {
      const producedMs = chain.producedAt(blockNumber);
      return producedMs === undefined ? undefined : bodies.extrinsicsOf(blockNumber, producedMs);
    },
    /** Returns the hash of a block that was produced, 64 hex digits. */
    hashOf: headers.hashOf,
    /** Returns the header of a block that was produced. */
    headerOf: headers.headerOf,
    /** Returns the number of the block of the run that has the hash; undefined if none has it. */
    numberOf: headers.numberOf,
    /** Sets the number of blocks that must follow a block before a finality round finalizes it. */
    setFinalityGap(blocks: number, nowMs: number): void {
      advance(nowMs);
      chain.setFinalityGap(blocks, reachedMs);
    },
  };
}
