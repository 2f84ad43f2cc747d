import type { Clock } from '../../lib/clock.ts';
import { isObject } from '../../lib/json.ts';
import { escapeText } from '../../lib/text.ts';
import type { NodeConnection } from './node-connection.ts';
import {
  type Chain,
  ChainError,
  type ChainHead,
  type ChainSettings,
  type ChainStatus,
} from './port.ts';

/** The waits between connections: doubled after each round through all addresses. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** A connection works when it has announced a new block after this time. */
const PROVEN_MS = 5_000;
/** Problems that are reported until the chain works again. */
const MAX_PROBLEMS = 20;
/** Shortest time between two calls of the listeners. */
const HEADS_EVERY_MS = 100;
const SUBSCRIBE = 'chain_subscribeFinalizedHeads';
const NOTIFICATION = 'chain_finalizedHead';
/** Block numbers have 32 bits. */
const MAX_BLOCK_NUMBER = 2 ** 32 - 1;

type ChainDeps = {
  settings: ChainSettings;
  clock: Clock;
  random: () => number;
  version: string;
  /** Called with each new problem, and when the chain works: initially, and after problems. */
  onChange?: (status: ChainStatus) => void;
};

type Node = { connection: NodeConnection; connectedAt: number | null };

/**
 * Connects to the nodes of an upstream in order: to the next one after a failure, or when no block
 * is announced for the time of three blocks.
 */
export function openChain({ settings, clock, random, version, onChange }: ChainDeps): Chain {
  let { urls } = settings;
  let index = 0;
  /** Connections that failed since one has worked. */
  let failures = 0;
  let node: Node | undefined;
  let newestAttempt = 0;
  let cancelRetry = () => {};
  let cancelStall = () => {};
  let name: string | null = null;
  let genesisHash: string | null = null;
  let problem: string | null = null;
  const reported = new Set<string>();
  const blocks = new FinalizedBlocks();
  const listeners = new Set<(head: ChainHead) => void>();
  let waiting: ChainHead | undefined;
  let cancelHeads: (() => void) | undefined;
  let calledAt = Number.NEGATIVE_INFINITY;

  const host = () => URL.parse(urls[index] ?? '')?.host ?? '';
  const status = (): ChainStatus => ({
    name,
    genesisHash,
    head: blocks.newest,
    problem,
    nodes: [
      {
        host: host(),
        isConnected: node !== undefined && node.connectedAt !== null,
        head: blocks.newest,
        problem,
      },
    ],
  });

  function recover(): void {
    failures = 0;
    problem = null;
    reported.clear();
    onChange?.(status());
  }

  async function connect(): Promise<void> {
    const url = urls[index];
    if (url === undefined) return;
    newestAttempt += 1;
    const attempt = newestAttempt;
    // Loaded on demand, because most servers have no chain.
    const { connectToNode } = await import('./node-connection.ts');
    if (attempt !== newestAttempt) return;
    const current: Node = {
      connectedAt: null,
      connection: connectToNode({
        url,
        clock,
        version,
        onNotification: (method, params) => {
          if (method === NOTIFICATION && node === current) receiveHead(params.result);
        },
        onClose: (reason) => {
          if (node === current) fail(reason);
        },
      }),
    };
    node = current;
    void current.connection.opened.then(() => subscribe(current));
  }

  async function subscribe(current: Node): Promise<void> {
    const { connection } = current;
    const [chainName, genesis, subscription] = await Promise.allSettled([
      connection.call('system_chain', []),
      connection.call('chain_getBlockHash', [0]),
      connection.call(SUBSCRIBE, []),
    ]);
    if (node !== current) return;
    if (subscription.status === 'rejected') {
      connection.close(refusal(subscription.reason, genesis));
      return;
    }
    name = textOf(chainName);
    genesisHash = textOf(genesis);
    current.connectedAt = clock.now();
    awaitBlock();
    // After a failure, the node has to announce a new block first: it may close each connection.
    if (failures === 0) recover();
  }

  function receiveHead(header: unknown): void {
    const number = blockNumberOf(header);
    if (number === undefined) {
      node?.connection.close('it sends a finalized block without a valid number');
      return;
    }
    const head = { number, at: clock.now() };
    if (blocks.add(head)) {
      awaitBlock();
      const connectedAt = node?.connectedAt ?? head.at;
      if (failures > 0 && head.at - connectedAt >= PROVEN_MS) recover();
    }
    if (waiting === undefined || head.number > waiting.number) waiting = head;
    cancelHeads ??= clock.after(Math.max(0, calledAt + HEADS_EVERY_MS - head.at), announce);
  }

  function announce(): void {
    const head = waiting;
    cancelHeads = undefined;
    waiting = undefined;
    calledAt = clock.now();
    if (head) for (const listener of [...listeners]) listener(head);
  }

  function awaitBlock(): void {
    cancelStall();
    cancelStall = clock.after(blocks.stallMs(), () =>
      node?.connection.close(
        'it announces no finalized blocks: it is behind, or the chain has stopped to finalize',
      ),
    );
  }

  function fail(reason: string): void {
    problem = `${host()}: ${reason}`;
    node = undefined;
    cancelStall();
    blocks.interrupt();
    failures += 1;
    if (!reported.has(problem) && reported.size < MAX_PROBLEMS) {
      reported.add(problem);
      onChange?.(status());
    }
    index = (index + 1) % urls.length;
    const rounds = Math.ceil(failures / urls.length) - 1;
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(rounds, 16));
    // Between half of the wait and all of it, so that many servers do not reconnect at once.
    cancelRetry = clock.after(waitMs * (0.5 + random() / 2), () => void connect());
  }

  function disconnect(): void {
    const { connection } = node ?? {};
    node = undefined;
    newestAttempt += 1;
    cancelRetry();
    cancelStall();
    cancelHeads?.();
    cancelHeads = undefined;
    waiting = undefined;
    connection?.close('dawatch has disconnected');
  }

  void connect();
  return {
    onHead(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    finalizedAt: (blockNumber) => blocks.finalizedAt(blockNumber),
    async call<T>(method: string, params: unknown[]) {
      if (!node || node.connectedAt === null)
        throw new ChainError('not_connected', problem ?? 'no node of the chain is connected');
      const result = (await node.connection.call(method, params)) as T;
      return { node: host(), result };
    },
    status: () => (urls.length === 0 ? null : status()),
    async close() {
      urls = [];
      disconnect();
    },
  };
}

function refusal(error: unknown, genesis: PromiseSettledResult<unknown>): string {
  if (!(error instanceof ChainError)) return String(error);
  if (error.reason !== 'method_not_found') return error.message;
  const isOther =
    genesis.status === 'rejected' &&
    genesis.reason instanceof ChainError &&
    genesis.reason.reason === 'method_not_found';
  return isOther
    ? `it does not know the methods of a Substrate node such as ${SUBSCRIBE}: it belongs to another kind of chain, such as Ethereum`
    : `it does not offer ${SUBSCRIBE}; nodes need WebSocket and this method`;
}

const MAX_TEXT_CHARS = 100;

/** Returns the text that a node responded; null for anything else. */
function textOf(result: PromiseSettledResult<unknown>): string | null {
  return result.status === 'fulfilled' && typeof result.value === 'string'
    ? escapeText(result.value, MAX_TEXT_CHARS)
    : null;
}

/** Returns the number in a header, which is hexadecimal; undefined if there is none. */
export function blockNumberOf(header: unknown): number | undefined {
  const number = isObject(header) ? header.number : undefined;
  const value =
    typeof number === 'string' && /^0x[0-9a-f]{1,16}$/i.test(number) ? Number(number) : number;
  return typeof value === 'number' &&
    Number.isInteger(value) &&
    value >= 0 &&
    value <= MAX_BLOCK_NUMBER
    ? value
    : undefined;
}

/** Announcements that are kept: about six hours of a chain with slots of 20 s. */
const MAX_KEPT = 1_024;
/** Moments from which the time of a block is measured. */
const MEASURED = 20;
const MIN_MEASURED = 5;
/** Wait for the next block until the time of a block is measured. */
const FIRST_STALL_MS = 60_000;
const MIN_STALL_MS = 15_000;
const MAX_STALL_MS = 10 * 60_000;
const BLOCKS_PER_STALL = 3;
/** Blocks that are announced within this time became final together: they are one moment. */
const MOMENT_MS = 1_000;

/** Which blocks a node announced as final, and when. */
class FinalizedBlocks {
  /** In ascending order of numbers. `isExact`: dawatch was connected when it became final. */
  readonly #kept: (ChainHead & { isExact: boolean })[] = [];
  #newest: ChainHead | null = null;
  /** The highest number of the current connection; null before the first. */
  #highest: number | null = null;
  /** When new blocks of the current connection became final, the first one excluded. */
  readonly #moments: number[] = [];

  /** The highest block that was announced; null before the first. */
  get newest(): ChainHead | null {
    return this.#newest;
  }

  /** Returns whether the block is higher than all others of the current connection. */
  add(head: ChainHead): boolean {
    const isFirst = this.#highest === null;
    if (this.#highest !== null && head.number <= this.#highest) return false;
    this.#highest = head.number;
    const newestMoment = this.#moments.at(-1) ?? Number.NEGATIVE_INFINITY;
    if (!isFirst && head.at - newestMoment >= MOMENT_MS) this.#moments.push(head.at);
    if (this.#moments.length > MEASURED) this.#moments.shift();
    // The chain began anew, or the earlier heads were wrong.
    if (isFirst && this.#newest !== null && head.number < this.#newest.number) {
      this.#kept.length = 0;
      this.#newest = null;
    }
    if (this.#newest === null || head.number > this.#newest.number) {
      this.#newest = head;
      // A node announces its newest final block at the beginning of each subscription.
      this.#kept.push({ ...head, isExact: !isFirst });
      if (this.#kept.length > MAX_KEPT) this.#kept.shift();
    }
    return true;
  }

  /** The connection has ended, so blocks may become final unnoticed. */
  interrupt(): void {
    this.#highest = null;
    this.#moments.length = 0;
  }

  /** Returns when a block was announced as final, epoch milliseconds; null if not known. */
  finalizedAt(blockNumber: number): number | null {
    const index = this.#kept.findIndex(({ number }) => number >= blockNumber);
    const found = this.#kept[index];
    // Blocks up to the first one that is kept may have become final before it.
    return found?.isExact && index > 0 ? found.at : null;
  }

  /**
   * Returns the time without a new block after which the node counts as stalled: that of three
   * blocks, or groups of blocks.
   */
  stallMs(): number {
    const [first, last] = [this.#moments[0], this.#moments.at(-1)];
    if (first === undefined || last === undefined || this.#moments.length < MIN_MEASURED)
      return FIRST_STALL_MS;
    const blockMs = (last - first) / (this.#moments.length - 1);
    return Math.min(MAX_STALL_MS, Math.max(MIN_STALL_MS, BLOCKS_PER_STALL * blockMs));
  }
}
