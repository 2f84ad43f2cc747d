import { LedgerError } from '../../ledger/errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { dataOf, integerFrom } from '../../submissions/classify.ts';
import type { RecordedChange, Verdict } from '../../submissions/store-results.ts';
import type { InVerification, SubmissionQueries } from '../../submissions/submission-queries.ts';
import type { Chain, ChainSettings } from './port.ts';
import { ChainVerifier, type Finalized } from './verifier.ts';

/** The longest time between two rounds. */
const ROUND_MS = 30_000;
/** Submissions that are verified at once: fewer than the 64 calls that may wait for a node. */
const PAGE = 50;
/** A contradicted submission is polled again after this time: the upstream may correct itself. */
const POLL_AGAIN_MS = 600_000;
const BEGINNING = { chain: '', id: 0 };

export type QueueDeps = {
  upstream: string;
  chain: Chain;
  settings: ChainSettings;
  submissions: SubmissionQueries;
  clock: Clock;
  /** Commits verdicts; returns nothing if the ledger fails. */
  record: (upstream: string, verdicts: readonly Verdict[]) => RecordedChange[];
  poll: (upstream: string, submissionId: string) => void;
};

/**
 * Verifies unconfirmed submissions of one upstream again, in a round at each finalized block, or
 * after 30 s. The ledger is the queue, so a restart or a failed write loses nothing. A round ends
 * when a page settles nothing, and the next round continues there.
 */
export class VerificationQueue {
  readonly #deps: QueueDeps;
  readonly #verifier: ChainVerifier;
  #after = BEGINNING;
  #isRunning = false;
  #isWanted = false;
  #isStopped = false;
  #ignoreHeads = () => {};
  #cancelTimer = () => {};

  constructor(deps: QueueDeps) {
    this.#deps = deps;
    const dataHashOf = (id: string) => deps.submissions.dataHashOf(id);
    this.#verifier = new ChainVerifier({ ...deps, dataHashOf });
  }

  /** Returns the observation with its first verdict, after a second at most. */
  observe(observation: Finalized): Promise<Finalized> {
    return this.#verifier.observe(observation);
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
    this.#verifier.beginRound();
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
    const verdicts = await Promise.all(page.map((one) => this.#verify(one)));
    const recorded = this.#isStopped ? [] : record(upstream, verdicts);
    const pollAgainAt = clock.now() - POLL_AGAIN_MS;
    for (const { submission } of recorded)
      if (submission.chain === 'contradicted' && (submission.polledAt ?? 0) <= pollAgainAt)
        poll(upstream, submission.submissionId);
    return isEnd || recorded.some(({ result }) => result.change !== null);
  }

  async #verify(stored: InVerification): Promise<Verdict> {
    const { chain: nodes, clock } = this.#deps;
    const chain = await this.#verifier.verify(stored);
    const number = integerFrom(dataOf(stored.envelope)?.block_number);
    const finalityAt = number === null ? null : nodes.finalizedAt(number);
    const lagMs = clock.now() - Math.max(finalityAt ?? 0, stored.trackedAt);
    const detection = finalityAt === null ? null : { finalityAt, source: 'chain' as const, lagMs };
    return { stored, chain, isHeld: this.#verifier.isHeld(chain), detection };
  }
}
