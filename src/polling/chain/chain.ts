import type { Clock } from '../../lib/clock.ts';
import { FinalizedHeads } from './finalized-heads.ts';
import { blockNumberOf, openNode } from './node.ts';
import {
  type Chain,
  ChainError,
  type ChainHead,
  type ChainSettings,
  type NodeStatus,
} from './port.ts';

/** Shortest time between two calls of the listeners. */
const HEADS_EVERY_MS = 100;

type ChainDeps = {
  settings: ChainSettings;
  clock: Clock;
  random: () => number;
  version: string;
  /** Hash of block 0 of the chain; null: not known. */
  genesisHash?: string | null;
  /** Called with each new problem of a connection, and with null when the node works. */
  onChange?: (node: { host: string; name: string | null; problem: string | null }) => void;
};

/** Connects to all nodes of an upstream. Of each block, the first announcement counts. */
export function openChain(deps: ChainDeps): Chain {
  const { settings, clock, genesisHash = null, onChange } = deps;
  const hosts = hostsOf(settings.urls);
  const heads = new FinalizedHeads(hosts, genesisHash);
  const listeners = new Set<(head: ChainHead) => void>();
  let waiting: ChainHead | null = null;
  let cancelHeads: (() => void) | undefined;
  let calledAt = Number.NEGATIVE_INFINITY;
  const nodes = settings.urls.map((url, index) => follow(url, hosts[index] as string));

  function follow(url: string, host: string) {
    const follower = { host, name: null as string | null, unusedSince: null as number | null };
    const node = openNode({
      ...{ ...deps, url },
      onConnected(chain) {
        follower.name = chain.name;
        heads.connect(host, chain.genesis);
      },
      onHead(head) {
        announce(heads.observe(host, head, clock.now()));
        if (heads.isAhead(host, clock.now())) void askForBest();
      },
      onClosed() {
        heads.disconnect(host);
        noteUnused();
      },
      onChange: (problem) => onChange?.({ ...follower, problem }),
    });
    async function askForBest(): Promise<void> {
      const header = await node.call('chain_getHeader', []).catch(() => undefined);
      const number = blockNumberOf(header);
      if (number !== undefined) announce(heads.observeBest(host, number, clock.now()));
    }
    return Object.assign(follower, { node });
  }

  function announce(head: ChainHead | null): void {
    noteUnused();
    if (!head) return;
    waiting = head;
    const waitMs = Math.max(0, calledAt + HEADS_EVERY_MS - clock.now());
    cancelHeads ??= clock.after(waitMs, () => {
      cancelHeads = undefined;
      calledAt = clock.now();
      for (const listener of [...listeners]) listener(waiting ?? head);
    });
  }

  function nodeStatuses(): NodeStatus[] {
    const distrusted = heads.distrusted(clock.now());
    return nodes.map(({ host, node: { isConnected, problem }, unusedSince }) => {
      const common = { host, head: heads.headOf(host), unusedSince };
      if (problem !== null) return { ...common, state: 'disconnected', problem };
      const { state = isConnected ? 'used' : 'connecting', reason = null } =
        distrusted.get(host) ?? {};
      return { ...common, state, problem: reason };
    });
  }

  function noteUnused(): void {
    for (const [index, { problem }] of nodeStatuses().entries()) {
      const node = nodes[index] as (typeof nodes)[number];
      node.unusedSince = problem === null ? null : (node.unusedSince ?? clock.now());
    }
  }

  return {
    onHead(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    finalizedAt: (blockNumber) => heads.finalizedAt(blockNumber, clock.now()),
    async call<T>(method: string, params: unknown[], except?: string) {
      const statuses = nodeStatuses();
      const used = nodes.filter((_, index) => statuses[index]?.state === 'used');
      const others = used.filter(({ host }) => host !== except);
      const failed = statuses.find(({ problem }) => problem !== null);
      const reason = failed ? `${failed.host}: ${failed.problem}` : 'no node is connected';
      let failure = new ChainError('not_connected', reason);
      for (const { host, node } of others.length > 0 ? others : used)
        try {
          return { node: host, result: (await node.call(method, params)) as T };
        } catch (error) {
          if (!(error instanceof ChainError)) throw error;
          failure = error;
        }
      throw failure;
    },
    confirm: () => heads.confirmGenesis(),
    status() {
      if (nodes.length === 0) return null;
      const name = nodes.find((node) => node.name !== null)?.name ?? null;
      const { genesis: genesisHash, newest: head } = heads;
      return { name, genesisHash, head, nodes: nodeStatuses() };
    },
    async close() {
      cancelHeads?.();
      for (const { node } of nodes) node.close();
    },
  };
}

/** Returns the name of each node, which is shown: its host, which several may share. */
function hostsOf(urls: readonly string[]): string[] {
  const hosts = urls.map((url) => URL.parse(url)?.host ?? '');
  return hosts.map((host, index) =>
    hosts.indexOf(host) === index ? host : `${host} (${index + 1})`,
  );
}
