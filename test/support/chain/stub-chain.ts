import type { Chain, ChainHead, ChainStatus } from '../../../src/polling/chain/port.ts';

/** The response of a node of this name, or a rejection. */
export type Respond = (node: string, method: string, params: unknown[]) => Promise<unknown>;

const GENESIS_HASH = `0x${'9'.repeat(64)}`;

/** The nodes of a chain that has finalized block 7. Calls ask the first of them, as in the port. */
export function stubChain(respond: Respond, names: readonly string[] = ['node']) {
  const head = { number: 7, at: 0 };
  const status: ChainStatus = {
    ...{ name: null, genesisHash: GENESIS_HASH, head },
    nodes: names.map((host) => {
      return { host, state: 'used', head, problem: null, unusedSince: null };
    }),
  };
  const listeners = new Set<(head: ChainHead) => void>();
  const calls: string[] = [];
  const chain: Chain = {
    onHead: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    finalizedAt: () => null,
    confirm: () => null,
    async call<T>(method: string, params: unknown[], except?: string) {
      const node = names.find((name) => name !== except) ?? names[0] ?? '';
      calls.push(method);
      return { node, result: (await respond(node, method, params)) as T };
    },
    status: () => status,
    close: async () => undefined,
  };
  return {
    chain,
    status,
    /** The methods of all calls. */
    calls,
    /** Announces a final block. */
    announce(number: number): void {
      status.head = { number, at: 0 };
      for (const listener of [...listeners]) listener(status.head);
    },
  };
}
