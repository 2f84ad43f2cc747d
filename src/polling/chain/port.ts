import type { UpstreamConfig } from '../settings.ts';

/** The newest block that a node announced as final. `at`: when it did so, epoch milliseconds. */
export type ChainHead = { number: number; at: number };

export type ChainSettings = UpstreamConfig['chain'];

/** The first and the later ones: a node that is used, and why it is not. */
export const NODE_STATES = [
  'used',
  'connecting',
  'disconnected',
  'another_chain',
  'early',
  'behind',
  'another_block',
] as const;

export type NodeStatus = {
  /** Host and port; names the node. */
  host: string;
  state: (typeof NODE_STATES)[number];
  /** The highest block that it announced as final; null: none since the start. */
  head: ChainHead | null;
  /** Why it is not used, in one sentence without secrets; null: it is, or is connecting. */
  problem: string | null;
  /** Since when it has had a problem; null: it has none. */
  unusedSince: number | null;
};

export type ChainStatus = {
  name: string | null;
  /** Hash of block 0, which identifies the chain; null: not known. */
  genesisHash: string | null;
  /** The highest block that a trusted node announced as final; null: none since the start. */
  head: ChainHead | null;
  /** In the order of the settings. */
  nodes: NodeStatus[];
};

/**
 * `closed`: the connection ended before the response. `busy`: too many calls wait.
 * `method_not_found`, `refused`: the node responded with an error. `too_large`: the response
 * exceeds the limit, which also closes the connection.
 */
export type ChainErrorReason =
  | 'not_connected'
  | 'closed'
  | 'timeout'
  | 'busy'
  | 'method_not_found'
  | 'refused'
  | 'too_large';

export class ChainError extends Error {
  override readonly name = 'ChainError';
  readonly reason: ChainErrorReason;
  constructor(reason: ChainErrorReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The nodes of the chain of one upstream. Connects and reconnects by itself. */
export type Chain = {
  /**
   * Reports each finalized block when the first trusted node announces it, at most ten times per
   * second. They may arrive with gaps, and out of order when the trust in a node ends. Returns a
   * function that removes the listener.
   */
  onHead(listener: (head: ChainHead) => void): () => void;
  /**
   * Returns when the first trusted node announced the block or a later one, epoch ms; null: no node
   * was connected then, not final, or too old.
   */
  finalizedAt(blockNumber: number): number | null;
  /**
   * Calls a method of the trusted nodes, in the order of the settings, until one returns a result.
   * `except`: the host of a node that is asked only if there is no other. `node`: the host that
   * responded. Rejects with ChainError. The result of chain_getBlock has its extrinsics as a Buffer
   * with JSON, without brackets.
   */
  call<T>(method: string, params: unknown[], except?: string): Promise<{ node: string; result: T }>;
  /**
   * A node has confirmed a block of the upstream, so that nodes with another block 0 are wrong.
   * Returns the hash of block 0.
   */
  confirm(): string | null;
  /** Null without addresses in the settings. */
  status(): ChainStatus | null;
  close(): Promise<void>;
};
