import type { Clock } from '../../lib/clock.ts';
import { escapeText } from '../../lib/text.ts';
import { dataOf, type Observation } from '../../submissions/classify.ts';
import { ANOTHER_CHAIN, type ChainResult } from '../../submissions/submission.ts';
import { BlockTransactions, type Transaction } from './block-transactions.ts';
import { type Chain, ChainError, type ChainHead, type ChainSettings } from './port.ts';

/** Longest time for which the report of a poll waits for the node. */
const MAX_WAIT_MS = 5_000;
/** The same after the node did not respond in time, until it responds again. */
const SHORT_WAIT_MS = 100;
const MAX_BLOCKS = 256;
/** Submissions that are polled again when the node knows their blocks. */
const MAX_WAITING = 10_000;
/** The node belongs to another chain if so many of the newest verified blocks contradict. */
const OTHER_CHAIN = { blocks: 10, contradicted: 5 };
/** Blocks that are asked for at each head, for the submissions that wait for them. */
const ASKED_PER_HEAD = 8;
const MAX_SHOWN_CHARS = 70;

class UnavailableError extends Error {
  override readonly name = 'UnavailableError';
}

/**
 * What the upstream says; null: nothing. `dataHash`: of the data that must have been submitted;
 * null: any.
 */
type Claim = {
  submissionId: string;
  number: number;
  hash: string;
  txIndex: number | null;
  txHash: string | null;
  dataHash: string | null;
};

type VerifierDeps = {
  chain: Chain;
  settings: ChainSettings;
  clock: Clock;
  /** Returns the `data_hash` of the caller, 0x and 64 digits in lower case; null: none. */
  dataHashOf: (submissionId: string) => string | null;
  /** Called with each submission whose required verification was unavailable, and is possible. */
  onAvailable: (submissionId: string) => void;
};

/** Verifies on the chain of one upstream what the upstream says about finalized submissions. */
export class ChainVerifier {
  readonly #chain: Chain;
  readonly #clock: Clock;
  readonly #dataHashOf: VerifierDeps['dataHashOf'];
  readonly #onAvailable: (submissionId: string) => void;
  readonly #settings: ChainSettings;
  readonly #hashes = new Map<number, Promise<string>>();
  readonly #contradicted = new Map<number, boolean>();
  /** The submissions that wait for the node, by the numbers of their blocks. */
  readonly #waiting = new Map<number, Set<string>>();
  readonly #transactions: BlockTransactions;
  #waitingCount = 0;
  #isResponsive = true;

  constructor({ chain, settings, clock, dataHashOf, onAvailable }: VerifierDeps) {
    this.#chain = chain;
    this.#settings = settings;
    this.#clock = clock;
    this.#dataHashOf = dataHashOf;
    this.#onAvailable = onAvailable;
    this.#transactions = new BlockTransactions(chain);
    chain.onHead((head) => this.#pollWaiting(head));
  }

  /** Whether finalized submissions are verified. Their data are compared without a node, too. */
  get isOn(): boolean {
    return this.#settings.verify !== 'off';
  }

  get isOtherChain(): boolean {
    const contradicted = [...this.#contradicted.values()].filter(Boolean).length;
    return contradicted >= OTHER_CHAIN.contradicted;
  }

  /**
   * Returns the observation with its verdict; pending if a required confirmation is missing. Takes
   * MAX_WAIT_MS at most, and never rejects.
   */
  async observe(observation: Finalized): Promise<Observation> {
    const chain = await this.#verdictOn(observation);
    if (chain === undefined) return observation;
    if (this.#settings.verify !== 'require' || chain.verdict === 'confirmed')
      return { ...observation, chain };
    // Its block says nothing about when rows change.
    return { ...observation, kind: 'pending', blockNumber: null, chain };
  }

  async #verdictOn(observation: Finalized): Promise<ChainResult | undefined> {
    const { result, hash } = this.#compareData(observation);
    if (result?.verdict === 'contradicted') return result;
    const onChain =
      this.#settings.urls.length > 0 ? await this.#verify(observation, hash) : undefined;
    return onChain?.verdict === 'contradicted' ? onChain : (result ?? onChain);
  }

  /**
   * Compares the upstream's `data_hash`. `hash`: the equal ones. `result`: undefined without a
   * contradiction.
   */
  #compareData({ submissionId, envelope }: Finalized): {
    result?: ChainResult;
    hash: string | null;
  } {
    let expected: string | null;
    try {
      expected = this.#dataHashOf(submissionId);
    } catch {
      return { result: unavailable('the ledger cannot be read'), hash: null };
    }
    const { data_hash } = dataOf(envelope) ?? {};
    if (expected === null) return { hash: null };
    if (typeof data_hash !== 'string')
      return { result: unavailable('the upstream names no data_hash'), hash: null };
    const hash = normalized(data_hash);
    if (hash === expected) return { hash };
    const named = escapeText(hash, MAX_SHOWN_CHARS);
    const reason = `data_hash is ${named}, not ${expected} that was expected`;
    return { result: { verdict: 'contradicted', reason }, hash: null };
  }

  async #verify(
    { submissionId, blockNumber, envelope }: Finalized,
    dataHash: string | null,
  ): Promise<ChainResult> {
    const { block_hash, tx_index, tx_hash } = dataOf(envelope) ?? {};
    if (blockNumber === null || !Number.isSafeInteger(blockNumber) || blockNumber < 0)
      return unavailable('the upstream names no block number');
    const claim = {
      submissionId,
      number: blockNumber,
      hash: normalized(block_hash),
      txIndex: typeof tx_index === 'number' ? tx_index : null,
      txHash: typeof tx_hash === 'string' ? normalized(tx_hash) : null,
      dataHash,
    };
    const found = this.#compare(claim);
    let cancel = () => {};
    const late = new Promise<ChainResult>((resolve) => {
      const waitMs = this.#isResponsive ? MAX_WAIT_MS : SHORT_WAIT_MS;
      cancel = this.#clock.after(waitMs, () => {
        this.#isResponsive = false;
        resolve(unavailable(this.#lateReason(claim)));
      });
    });
    const result = await Promise.race([found, late]);
    cancel();
    if (result.verdict === 'unavailable') this.#wait(claim);
    else this.#endWait(claim);
    return result;
  }

  async #compare(claim: Claim): Promise<ChainResult> {
    const { number, hash } = claim;
    let onChain: string;
    try {
      onChain = await this.#hashOf(number);
    } catch (error) {
      return unavailable(reasonOf(error));
    }
    const isEqual = onChain === hash;
    this.#note(number, !isEqual);
    if (isEqual) return this.#settings.verify_data ? this.#findTransaction(claim) : CONFIRMED;
    // The next verification asks again: another node may have another hash.
    this.#hashes.delete(number);
    const other = this.isOtherChain
      ? `; most blocks that were verified differ: ${ANOTHER_CHAIN}`
      : '';
    const named = escapeText(hash, MAX_SHOWN_CHARS);
    const reason = `block ${number} is ${onChain} on the chain, not ${named}${other}`;
    return { verdict: 'contradicted', reason };
  }

  /** Verifies that the block contains the transaction, and this the data. */
  async #findTransaction(claim: Claim): Promise<ChainResult> {
    const { number, hash, txIndex, txHash, dataHash } = claim;
    if (txIndex === null || txHash === null)
      return unavailable('the upstream names no transaction: tx_index or tx_hash is missing');
    let transactions: readonly Transaction[];
    try {
      transactions = await this.#transactionsOf(number, hash);
    } catch (error) {
      return unavailable(reasonOf(error));
    }
    const onChain = transactions[txIndex];
    const name = `transaction ${txIndex} of block ${number}`;
    if (onChain?.hash !== txHash) {
      const found = onChain ? `it is ${onChain.hash}` : `block ${number} has none`;
      const named = escapeText(txHash, MAX_SHOWN_CHARS);
      return { verdict: 'contradicted', reason: `${name} is not ${named}: ${found}` };
    }
    if (dataHash === null || onChain.dataHash === dataHash) return CONFIRMED;
    if (onChain.dataHash === null)
      return unavailable(`${name} is no call of submit_data, so that its data cannot be read`);
    const reason = `${name} submits data with the hash ${onChain.dataHash}, not ${dataHash}`;
    return { verdict: 'contradicted', reason };
  }

  async #transactionsOf(number: number, hash: string): Promise<readonly Transaction[]> {
    const { transactions } = await this.#transactions.of(number, hash);
    if (transactions === null)
      throw new UnavailableError(`the node does not have the content of block ${number}`);
    return transactions;
  }

  /** Returns the hash of a final block; concurrent callers share one request. */
  #hashOf(number: number): Promise<string> {
    const existing = this.#hashes.get(number);
    if (existing) return existing;
    const hash = this.#ask(number);
    this.#hashes.set(number, hash);
    const [oldest] = this.#hashes.keys();
    if (this.#hashes.size > MAX_BLOCKS && oldest !== undefined) this.#hashes.delete(oldest);
    hash.catch(() => {
      if (this.#hashes.get(number) === hash) this.#hashes.delete(number);
    });
    return hash;
  }

  async #ask(number: number): Promise<string> {
    await this.#untilFinal(number);
    const { result: hash } = await this.#chain.call<unknown>('chain_getBlockHash', [number]);
    if (typeof hash !== 'string' || !/^0x[0-9a-f]{64}$/i.test(hash))
      throw new UnavailableError(`the node does not have block ${number}`);
    this.#isResponsive = true;
    return normalized(hash);
  }

  /** Resolves when the node has announced the block, or a later one, as final. */
  #untilFinal(number: number): Promise<void> {
    const status = this.#chain.status();
    const isConnected = status?.nodes.some((node) => node.isConnected);
    if (this.#isFinal(number) || (status && !isConnected && status.problem !== null))
      return Promise.resolve();
    return new Promise((resolve, reject) => {
      const stop = this.#chain.onHead((head) => {
        if (head.number < number) return;
        cancel();
        stop();
        resolve();
      });
      const cancel = this.#clock.after(MAX_WAIT_MS, () => {
        stop();
        reject(new UnavailableError(this.#notFinalReason(number)));
      });
    });
  }

  #isFinal(number: number): boolean {
    return (this.#chain.status()?.head?.number ?? -1) >= number;
  }

  #lateReason({ number }: Claim): string {
    return this.#isFinal(number)
      ? `the node did not respond within ${MAX_WAIT_MS / 1_000} s`
      : this.#notFinalReason(number);
  }

  #notFinalReason(number: number): string {
    const { head = null } = this.#chain.status() ?? {};
    return head === null
      ? `the node has not announced block ${number} as final`
      : `block ${number} is not final on the chain: the node has announced blocks up to ${head.number}`;
  }

  #note(number: number, isContradicted: boolean): void {
    this.#contradicted.delete(number);
    this.#contradicted.set(number, isContradicted);
    const [oldest] = this.#contradicted.keys();
    if (this.#contradicted.size > OTHER_CHAIN.blocks && oldest !== undefined)
      this.#contradicted.delete(oldest);
  }

  /** A reported result is verified again by the recheck of the submission. */
  #wait({ submissionId, number }: Claim): void {
    if (this.#settings.verify !== 'require' || this.#waitingCount >= MAX_WAITING) return;
    const waiting = this.#waiting.get(number) ?? new Set();
    this.#waiting.set(number, waiting);
    if (waiting.has(submissionId)) return;
    waiting.add(submissionId);
    this.#waitingCount += 1;
  }

  #endWait({ submissionId, number }: Claim): void {
    const waiting = this.#waiting.get(number);
    if (!waiting?.delete(submissionId)) return;
    this.#waitingCount -= 1;
    if (waiting.size === 0) this.#waiting.delete(number);
  }

  #pollWaiting(head: ChainHead): void {
    const numbers = [...this.#waiting.keys()].filter((number) => number <= head.number);
    for (const number of numbers.slice(0, ASKED_PER_HEAD)) {
      const submissions = this.#waiting.get(number) ?? new Set();
      // Those for which the node fails must not keep others from being asked for.
      this.#waiting.delete(number);
      this.#waiting.set(number, submissions);
      const poll = () => {
        if (this.#waiting.get(number) !== submissions) return;
        this.#waiting.delete(number);
        this.#waitingCount -= submissions.size;
        for (const id of submissions) this.#onAvailable(id);
      };
      const hash = this.#hashOf(number);
      const ready = this.#settings.verify_data
        ? hash.then((text) => this.#transactionsOf(number, text))
        : hash;
      ready.then(poll, () => undefined);
    }
  }
}

const CONFIRMED: ChainResult = { verdict: 'confirmed', reason: null };

type Finalized = Extract<Observation, { kind: 'pending' | 'finalized' }>;

function unavailable(reason: string): ChainResult {
  return { verdict: 'unavailable', reason };
}

function reasonOf(error: unknown): string {
  if (error instanceof UnavailableError || error instanceof ChainError) return error.message;
  throw error;
}

function normalized(hash: unknown): string {
  const text = String(hash).trim().toLowerCase();
  return text.startsWith('0x') ? text : `0x${text}`;
}
