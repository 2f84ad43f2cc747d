import type { Clock } from '../../lib/clock.ts';
import { isObject } from '../../lib/json.ts';
import { escapeText } from '../../lib/text.ts';
import { deadline } from './deadline.ts';
import type { NodeConnection } from './node-connection.ts';
import { ChainError } from './port.ts';

/** The waits between connections: doubled after each failure. */
const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 60_000;
/** A connection works when it has announced a block after this time. */
const PROVEN_MS = 5_000;
/** A node that announces no new block for so long is silent: three slots of 20 s. */
const SILENT_MS = 60_000;
const SUBSCRIBE = 'chain_subscribeFinalizedHeads';
const NOTIFICATION = 'chain_finalizedHead';
const GET_BLOCK = 'chain_getBlock';
/** Block numbers have 32 bits. */
const MAX_BLOCK_NUMBER = 2 ** 32 - 1;
const MAX_TEXT_CHARS = 100;
const HASH = /^0x[0-9a-f]{64}$/i;

type NodeDeps = {
  url: string;
  clock: Clock;
  random: () => number;
  version: string;
  /** Called before the first head of a connection. */
  onConnected: (chain: { name: string | null; genesis: string }) => void;
  onHead: (head: { number: number; block?: string | undefined }) => void;
  /** Called when a connection has failed or ended. */
  onClosed: () => void;
  /** Called with each new problem, and with null when the node works: initially, and afterwards. */
  onChange: (problem: string | null) => void;
};

export type Node = {
  /** Whether a head has arrived on this connection. */
  readonly isConnected: boolean;
  /** Why it is not connected; null: it is, or this has not failed yet. */
  readonly problem: string | null;
  call(method: string, params: unknown[]): Promise<unknown>;
  close(): void;
};

/** Stays connected to one node, and reports the final blocks that it announces. */
export function openNode(deps: NodeDeps): Node {
  const { url, clock, random, version, onConnected, onHead, onClosed, onChange } = deps;
  let connection: NodeConnection | undefined;
  /** Connections that failed since one has worked for PROVEN_MS. */
  let failures = 0;
  let problem: string | null = null;
  /** The newest one that was reported; null: that it works; undefined: nothing yet. */
  let reported: string | null | undefined;
  /** The highest block of this connection; -1: none yet. */
  let highest = -1;
  let firstAt = 0;
  let isClosed = false;
  let cancelTimer = () => {};

  const report = (news: string | null) => {
    if (news !== reported) onChange(news);
    reported = news;
  };

  async function connect(): Promise<void> {
    // Loaded on demand, because most servers have no chain.
    const { connectToNode } = await import('./node-connection.ts');
    if (isClosed) return;
    const current = connectToNode({
      ...{ url, clock, version, onClose: fail },
      onNotification(method, params) {
        if (method === NOTIFICATION) receive(current, params.result);
      },
    });
    connection = current;
    void subscribe(current);
  }

  async function subscribe(current: NodeConnection): Promise<void> {
    try {
      await current.opened;
      const genesis = await current.call('chain_getBlockHash', [0]);
      if (typeof genesis !== 'string' || !HASH.test(genesis))
        throw new ChainError('refused', 'it does not have block 0');
      const name = await current.call('system_chain', []).catch(() => null);
      onConnected({
        name: typeof name === 'string' ? escapeText(name, MAX_TEXT_CHARS) : null,
        genesis: genesis.toLowerCase(),
      });
      awaitBlock(current);
      await current.call(SUBSCRIBE, []);
    } catch (error) {
      current.close(refusalOf(error));
    }
  }

  function receive(current: NodeConnection, header: unknown): void {
    const number = blockNumberOf(header);
    if (number === undefined) {
      current.close('it sends a finalized block without a valid number');
      return;
    }
    if (highest < 0) firstAt = clock.now();
    problem = null;
    // After a failure, the node has to announce a later block: it may close each connection.
    if (clock.now() - firstAt >= PROVEN_MS) failures = 0;
    if (failures === 0) report(null);
    if (number > highest) {
      highest = number;
      awaitBlock(current);
    }
    onHead({ number, block: blockOf(header) });
  }

  function awaitBlock(current: NodeConnection): void {
    cancelTimer();
    cancelTimer = deadline(clock, SILENT_MS, () =>
      current.close(
        'it announces no finalized blocks: it is behind, or the chain has stopped to finalize',
      ),
    );
  }

  function fail(reason: string): void {
    connection = undefined;
    highest = -1;
    cancelTimer();
    if (isClosed) return;
    problem = reason;
    failures += 1;
    report(problem);
    onClosed();
    const waitMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures - 1, 16));
    // Between half of the wait and all of it, so that many servers do not reconnect at once.
    cancelTimer = clock.after(waitMs * (0.5 + random() / 2), () => void connect());
  }

  /** On a connection of its own, because only its response may be large. */
  async function getBlock(params: unknown[]): Promise<unknown> {
    const { connectToNode } = await import('./node-connection.ts');
    const current = connectToNode({
      ...{ url, clock, version, isForBlock: true, onClose: () => {} },
      onNotification: () => current.close('it sends a notification without a subscription'),
    });
    try {
      await current.opened;
      return await current.call(GET_BLOCK, params);
    } finally {
      current.close('dawatch has the block');
    }
  }

  void connect();
  return {
    get isConnected() {
      return highest >= 0;
    },
    get problem() {
      return problem;
    },
    call(method, params) {
      if (!connection)
        return Promise.reject(new ChainError('not_connected', 'it is not connected'));
      return method === GET_BLOCK ? getBlock(params) : connection.call(method, params);
    },
    close() {
      isClosed = true;
      cancelTimer();
      connection?.close('dawatch has disconnected');
    },
  };
}

function refusalOf(error: unknown): string {
  if (!(error instanceof ChainError)) return String(error);
  return error.reason === 'method_not_found'
    ? `${error.message}: it belongs to another kind of chain, such as Ethereum, or permits only some methods`
    : error.message;
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

/** Returns what tells a block from others of its number: headers do not contain their hash. */
function blockOf(header: unknown): string | undefined {
  const { parentHash, stateRoot, extrinsicsRoot } = isObject(header) ? header : {};
  const hashes = [parentHash, stateRoot, extrinsicsRoot];
  const areHashes = hashes.every((hash) => typeof hash === 'string' && HASH.test(hash));
  return areHashes ? hashes.join(' ').toLowerCase() : undefined;
}
