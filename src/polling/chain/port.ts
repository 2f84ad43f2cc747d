import type { UpstreamConfig } from '../settings.ts';

/** The newest block that a node announced as final. `at`: when it did so, epoch milliseconds. */
export type ChainHead = { number: number; at: number };

export type ChainSettings = UpstreamConfig['chain'];

type NodeStatus = {
  /** Host and port, by which the settings and the messages name it. */
  host: string;
  isConnected: boolean;
  /** The highest block that it announced as final; null: none since the start. */
  head: ChainHead | null;
  /** Why it is not used, in one sentence without secrets; null: it is. */
  problem: string | null;
};

export type ChainStatus = {
  name: string | null;
  /** Hash of block 0, which identifies the chain; null: not known. */
  genesisHash: string | null;
  /** The highest block that was announced as final; null: none since the start. */
  head: ChainHead | null;
  /** Why no node can be used, in one sentence without secrets; null: one can. */
  problem: string | null;
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
   * Reports finalized blocks, at most ten times per second. They may arrive twice, out of order and
   * with gaps. Returns a function that removes the listener.
   */
  onHead(listener: (head: ChainHead) => void): () => void;
  /**
   * Returns when the block or a later one was announced, epoch ms; null: not connected then, not
   * final, or too old.
   */
  finalizedAt(blockNumber: number): number | null;
  /**
   * Calls a method of a connected node, the first one in the order of the settings. `except`: the
   * host of a node that is not asked if there is another one. Returns the host of the node that
   * responded. Rejects with ChainError.
   */
  call<T>(
    method: string,
    params: unknown[],
    options?: { except?: string },
  ): Promise<{ node: string; result: T }>;
  /** Null without addresses in the settings. */
  status(): ChainStatus | null;
  close(): Promise<void>;
};
