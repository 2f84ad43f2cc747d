import type { Clock } from '../../lib/clock.ts';
import { typeReason } from '../../lib/explain-issue.ts';
import { escapeText } from '../../lib/text.ts';
import { dataOf, integerFrom, type Observation } from '../../submissions/classify.ts';
import type { ChainResult, Submission } from '../../submissions/submission.ts';
import { Blocks } from './blocks.ts';
import { toHex } from './data-root.ts';
import { type Chain, ChainError, type ChainSettings } from './port.ts';

/**
 * For how long the report of a poll waits for the verdict, which a node gives within milliseconds.
 * At 20 submissions per second, the waiting ones then occupy at most 20 of 32 concurrent polls.
 */
const FIRST_VERDICT_MS = 1_000;
/** Contradictions that wait for a second answer. */
const MAX_DOUBTS = 10_000;
const MAX_SHOWN_CHARS = 70;

/** `data`: what the upstream says, also about the block. `dataHash`: that of the caller. */
type Claim = { number: number; hash: string; data: UpstreamData; dataHash: string | null };
type UpstreamData = Record<string, unknown>;

/** `node`: which contradicts the claim, or lacks the block, so that another one may confirm it. */
type Answer = ChainResult & { node?: string };

type VerifierDeps = {
  chain: Chain;
  settings: ChainSettings;
  clock: Clock;
  /** Returns the `data_hash` of the caller, 0x and 64 digits in lower case; null: none. */
  dataHashOf: (submissionId: string) => string | null;
};

/**
 * Verifies on the chain of one upstream what the upstream says about finalized submissions. Asks
 * for each block once in a round. A contradiction needs two equal answers: from two nodes, or in
 * two rounds.
 */
export class ChainVerifier {
  readonly #deps: VerifierDeps;
  readonly #blocks: Blocks;
  readonly #hashes = new Map<string, Promise<{ node: string; hash: string | null }>>();
  #round = 0;
  /** The first round of each contradiction. Its reason identifies it, with all hashes. */
  readonly #doubts = new Map<string, number>();

  constructor(deps: VerifierDeps) {
    this.#deps = deps;
    this.#blocks = new Blocks(deps.chain, deps.clock);
  }

  /** Forgets what the nodes have answered, except doubts, which no other chain can confirm. */
  beginRound(): void {
    this.#round += 1;
    this.#hashes.clear();
    this.#blocks.beginRound();
  }

  /** Returns the observation with its verdict and the time of its finality, as far as known. */
  async observe(observation: Finalized): Promise<Finalized> {
    const { blockNumber } = observation;
    const chain = await this.#firstVerdict(observation);
    const isOther = blockNumber === null || chain?.verdict === 'contradicted';
    const finalityAt = isOther ? null : this.#deps.chain.finalizedAt(blockNumber);
    return {
      ...observation,
      ...(chain && { chain, isHeld: this.isHeld(chain) }),
      ...(finalityAt !== null && { finalityAt }),
    };
  }

  /** Takes FIRST_VERDICT_MS at most. */
  async #firstVerdict(observation: Finalized): Promise<ChainResult | null> {
    const { submissionId, envelope, blockNumber } = observation;
    const { clock, dataHashOf } = this.#deps;
    let cancel = () => {};
    const late = new Promise<ChainResult>((resolve) => {
      const reason = () => unavailable(this.#lateReason(blockNumber));
      cancel = clock.after(FIRST_VERDICT_MS, () => resolve(reason()));
    });
    const verify = async () => {
      const dataHash = dataHashOf(submissionId);
      await this.#untilFinal(blockNumber, late);
      const chain = await this.verify({ envelope, dataHash });
      const isSame = dataHashOf(submissionId) === dataHash;
      return isSame ? chain : unavailable('data_hash was changed');
    };
    const chain = await Promise.race([verify().catch(unavailableBecause), late]);
    cancel();
    return chain;
  }

  isHeld(chain: ChainResult | null): boolean {
    const isRequired = this.#deps.settings.verify === 'require' && chain !== null;
    return isRequired && chain.verdict !== 'confirmed';
  }

  /** Null: nothing is verified. */
  async verify({
    envelope,
    dataHash,
  }: Pick<Submission, 'envelope' | 'dataHash'>): Promise<ChainResult | null> {
    const { verify, urls, verify_data } = this.#deps.settings;
    if (verify === 'off') return null;
    const data = dataOf(envelope) ?? {};
    if (verify_data && urls.length > 0) return this.#verifyOnChain(data, dataHash);
    const compared = dataHash === null ? null : compareData(data, dataHash);
    if (compared?.verdict === 'contradicted' || urls.length === 0) return compared;
    const onChain = await this.#verifyOnChain(data, null);
    return onChain.verdict === 'contradicted' ? onChain : (compared ?? onChain);
  }

  async #verifyOnChain(data: UpstreamData, dataHash: string | null): Promise<ChainResult> {
    const number = integerFrom(data.block_number);
    if (number === null) return unavailable(`block_number ${typeReason('int', data.block_number)}`);
    if (this.#isAwaited(number)) return unavailable(this.#lateReason(number));
    const claim = { number, hash: normalized(data.block_hash), data, dataHash };
    const first = await this.#ask(claim);
    const { node, ...firstResult } = first;
    const isLacking = first.verdict === 'unavailable';
    if (node === undefined || (isLacking && !this.#hasOther(node))) return firstResult;
    const second = await this.#ask(claim, node);
    if (second.verdict === 'confirmed') return second;
    const { verdict, reason } = isLacking ? second : first;
    if (verdict !== 'contradicted') return firstResult;
    const isAgreed = second.node !== node && second.reason === first.reason;
    const isRepeated = this.#isDoubted(String(reason));
    if (!isRepeated) this.#blocks.doubt(claim.hash);
    if (isAgreed || isRepeated) return { verdict, reason };
    return unavailable(`${reason}; this is one answer, and another one is awaited`);
  }

  /** Returns what one node says. `except`: the node that is not asked if there is another one. */
  async #ask(claim: Claim, except?: string): Promise<Answer> {
    const { number, hash } = claim;
    try {
      const { node, hash: onChain } = await this.#hashOf(number, except);
      if (onChain === null)
        return { ...unavailable(`the node does not have block ${number}`), node };
      if (onChain === hash)
        return this.#deps.settings.verify_data ? await this.#proveData(claim, except) : CONFIRMED;
      const named = escapeText(hash, MAX_SHOWN_CHARS);
      const reason = `block ${number} is ${onChain} on the chain, not ${named}`;
      return { verdict: 'contradicted', reason, node };
    } catch (error) {
      return unavailableBecause(error);
    }
  }

  /** Verifies that the data root of the block contains the data of the transaction. */
  async #proveData(claim: Claim, except?: string): Promise<Answer> {
    const { number, hash, dataHash } = claim;
    const { tx_index, tx_hash, data_hash } = claim.data;
    const txIndex = integerFrom(tx_index);
    const txHash = typeof tx_hash === 'string' ? normalized(tx_hash) : null;
    const namedHash = typeof data_hash === 'string' ? normalized(data_hash) : null;
    if (txIndex === null || txHash === null)
      return settled('the upstream names no transaction: tx_index or tx_hash is missing');
    const { node, hashes, proof } = await this.#blocks.of(number, hash, except);
    if (hashes === null)
      return { ...settled(`the node lacks the body of block ${number}: it prunes`), node };
    const name = `transaction ${txIndex} of block ${number}`;
    const contradicted = (reason: string): Answer => {
      return { verdict: 'contradicted', reason: `${name} ${reason}`, node };
    };
    const onChain = hashes[txIndex];
    if (onChain !== txHash) {
      const found = onChain === undefined ? `block ${number} has none` : `it is ${onChain}`;
      return contradicted(`is not ${escapeText(txHash, MAX_SHOWN_CHARS)}: ${found}`);
    }
    if (typeof proof === 'string') return { ...settled(proof), node };
    const { block, data } = { ...proof, data: proof.data.get(txIndex) };
    if (!block || !data)
      return settled(`${name} is no direct call of submit_data: a wrapped one proves nothing`);
    const isOf = (one: string) => one === data.blake2b || one === toHex(data.leaf);
    const [named, expected] = [namedHash, dataHash].map((one) => one === null || isOf(one));
    if (namedHash !== null && named && !expected)
      return settled(
        `${name} has the data that the upstream names, ${namedHash}, not ${dataHash}: the upstream encrypts, or submitted other data`,
      );
    if (!named || !expected) {
      const other = escapeText(String(named ? dataHash : namedHash), MAX_SHOWN_CHARS);
      return contradicted(`submits data with the hash ${data.blake2b}, not ${other}`);
    }
    if (namedHash === null && dataHash === null)
      return settled('neither the upstream nor the caller names a data_hash');
    const { dataRoot } = block;
    return { ...CONFIRMED, proof: { block, blockHash: hash, leaf: data.leafIndex, dataRoot } };
  }

  /** Returns the hash of a final block; null: the node lacks it. Callers of a round share it. */
  #hashOf(number: number, except?: string): Promise<{ node: string; hash: string | null }> {
    const key = `${number} ${except}`;
    const existing = this.#hashes.get(key);
    if (existing) return existing;
    const ask = async () => {
      const { node, result } = await this.#deps.chain.call('chain_getBlockHash', [number], except);
      const isHash = typeof result === 'string' && /^0x[0-9a-f]{64}$/i.test(result);
      return { node, hash: isHash ? normalized(result) : null };
    };
    const hash = ask();
    this.#hashes.set(key, hash);
    return hash;
  }

  /** Whether the same contradiction was found in an earlier round. */
  #isDoubted(reason: string): boolean {
    const since = this.#doubts.get(reason) ?? this.#round;
    this.#doubts.set(reason, since);
    const [oldest] = this.#doubts.keys();
    if (this.#doubts.size > MAX_DOUBTS && oldest !== undefined) this.#doubts.delete(oldest);
    return since < this.#round;
  }

  #hasOther(node: string): boolean {
    const { nodes = [] } = this.#deps.chain.status() ?? {};
    return nodes.some(({ host, state }) => state === 'used' && host !== node);
  }

  /** Resolves when a node has announced the block, or a later one, as final, or it is late. */
  async #untilFinal(number: number | null, late: Promise<unknown>): Promise<void> {
    if (!this.#isAwaited(number)) return;
    let stop = () => {};
    const final = new Promise<void>((resolve) => {
      stop = this.#deps.chain.onHead(() => {
        if (!this.#isAwaited(number)) resolve();
      });
    });
    await Promise.race([final, late]);
    stop();
  }

  /** Whether a node is used, and none has announced the block as final. */
  #isAwaited(number: number | null): boolean {
    const { nodes = [], head = null } = this.#deps.chain.status() ?? {};
    const isUsed = nodes.some(({ state }) => state === 'used');
    return isUsed && number !== null && (head === null || head.number < number);
  }

  #lateReason(number: number | null): string {
    if (!this.#isAwaited(number))
      return `the block was not verified within ${FIRST_VERDICT_MS / 1_000} s`;
    const { head = null } = this.#deps.chain.status() ?? {};
    return head === null
      ? `no node has announced block ${number} as final`
      : `block ${number} is not final on the chain: the nodes have announced blocks up to ${head.number}`;
  }
}

const CONFIRMED: ChainResult = { verdict: 'confirmed', reason: null };

export type Finalized = Extract<Observation, { kind: 'pending' | 'finalized' }>;

/** Compares the upstream's `data_hash`; null: it is the expected one. */
function compareData({ data_hash }: UpstreamData, expected: string): ChainResult | null {
  if (typeof data_hash !== 'string') return unavailable('the upstream names no data_hash');
  const hash = normalized(data_hash);
  if (hash === expected) return null;
  const named = escapeText(hash, MAX_SHOWN_CHARS);
  const reason = `data_hash is ${named}, not ${expected} that was expected`;
  return { verdict: 'contradicted', reason };
}

/** Of the block and the claim, so that asking again changes nothing. */
function settled(reason: string): ChainResult {
  return { ...unavailable(reason), isSettled: true };
}

function unavailable(reason: string): ChainResult {
  return { verdict: 'unavailable', reason };
}

function unavailableBecause(error: unknown): ChainResult {
  const isOfNode = error instanceof ChainError;
  return unavailable(isOfNode ? error.message : 'the ledger cannot be read');
}

function normalized(hash: unknown): string {
  const text = String(hash).trim().toLowerCase();
  return text.startsWith('0x') ? text : `0x${text}`;
}
