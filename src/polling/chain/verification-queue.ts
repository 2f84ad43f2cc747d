import { LedgerError } from '../../ledger/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { DamagedRowError } from '../../lib/json.ts';
import { dataOf } from '../../submissions/classify.ts';
import type { RecordedChange, Verdict } from '../../submissions/store-results.ts';
import type { Submission } from '../../submissions/submission.ts';
import type {
  SubmissionQueries,
  VerificationPosition,
} from '../../submissions/submission-queries.ts';
import type { Chain } from './port.ts';
import type { ChainVerifier } from './verifier.ts';

/** The longest time between two rounds. */
const ROUND_MS = 30_000;
/** Submissions that are verified at once: fewer than the 64 calls that may wait for a node. */
const PAGE = 50;
/** A contradicted submission is polled again after this time: the upstream may correct itself. */
const POLL_AGAIN_MS = 600_000;
const BEGINNING: VerificationPosition = { chain: '', id: 0 };

export type QueueDeps = {
  upstream: string;
  chain: Pick<Chain, 'onHead' | 'finalizedAt'>;
  verifier: ChainVerifier;
  submissions: SubmissionQueries;
  clock: Clock;
  /** Commits verdicts; returns nothing if the ledger fails. */
  record: (upstream: string, verdicts: readonly Verdict[]) => RecordedChange[];
  poll: (upstream: string, submissionId: string) => void;
};

/**
 * Verifies again what the chain of one upstream has not confirmed: in a round at each finalized
 * block, or after 30 s. The ledger is the queue, so that a restart or a failed write loses nothing.
 * A round ends when a page settles nothing, and the next one continues where it ended.
 */
export class VerificationQueue {
  readonly #deps: QueueDeps;
  #after = BEGINNING;
  #isRunning = false;
  #isWanted = false;
  #isStopped = false;
  #ignoreHeads = () => {};
  #cancelTimer = () => {};

  constructor(deps: QueueDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#ignoreHeads = this.#deps.chain.onHead(() => void this.#round());
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#ignoreHeads();
    this.#cancelTimer();
  }

  async #round(): Promise<void> {
    this.#deps.verifier.beginRound();
    this.#isWanted = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#cancelTimer();
    try {
      while (this.#isWanted && !this.#isStopped) {
        this.#isWanted = false;
        if (await this.#settles()) this.#isWanted = true;
      }
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
    }
    this.#isRunning = false;
    if (this.#isStopped) return;
    this.#cancelTimer = this.#deps.clock.after(ROUND_MS, () => void this.#round());
  }

  /** Verifies a page. Returns whether something was settled, or the end was reached. */
  async #settles(): Promise<boolean> {
    const { upstream, submissions, clock, record, poll } = this.#deps;
    const page = submissions.listInVerification(upstream, { after: this.#after, limit: PAGE });
    const isEnd = page.length === 0 && this.#after !== BEGINNING;
    this.#after = (page.length === PAGE && page.at(-1)) || BEGINNING;
    const verdicts = await Promise.all(page.flatMap((one) => this.#verify(one.submissionId)));
    const recorded = this.#isStopped ? [] : record(upstream, verdicts);
    const pollAgainAt = clock.now() - POLL_AGAIN_MS;
    for (const { submission } of recorded)
      if (submission.chain === 'contradicted' && (submission.polledAt ?? 0) <= pollAgainAt)
        poll(upstream, submission.submissionId);
    return isEnd || recorded.some(({ result }) => result.change !== null);
  }

  #verify(submissionId: string): Promise<Verdict>[] {
    const { submissions } = this.#deps;
    try {
      const submission = submissions.get(submissionId);
      return submission ? [this.#verdictOn(submission)] : [];
    } catch (error) {
      // A damaged row must not keep the others waiting.
      if (error instanceof DamagedRowError) return [];
      throw error;
    }
  }

  async #verdictOn(submission: Submission): Promise<Verdict> {
    const { verifier, chain, clock } = this.#deps;
    const verdict = await verifier.verify(submission);
    const { block_number } = dataOf(submission.envelope) ?? {};
    const announcedAt = typeof block_number === 'number' ? chain.finalizedAt(block_number) : null;
    const detection =
      announcedAt === null
        ? null
        : {
            ...{ finalityAt: announcedAt, source: 'chain' as const },
            lagMs: clock.now() - Math.max(announcedAt, submission.trackedAt),
          };
    return { submission, chain: verdict, isHeld: verifier.isHeld(verdict), detection };
  }
}
