import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../operations/logging/event-catalog.ts';
import type { Observation } from '../../submissions/classify.ts';
import type { PollEngine } from '../poll-engine.ts';
import type { UsableUpstream } from '../upstreams.ts';
import { openChain } from './chain.ts';
import type { ChainHead, ChainStatus } from './port.ts';
import { type QueueDeps, VerificationQueue } from './verification-queue.ts';
import type { Finalized } from './verifier.ts';

type ChainsDeps = {
  upstreams: readonly [string, UsableUpstream][];
  clock: Clock;
  random: () => number;
  log: Log;
  version: string;
  genesis: {
    of: (upstream: string) => string | null;
    /** Stores it. May throw. */
    keep: (upstream: string, hash: string) => void;
  };
} & Pick<QueueDeps, 'submissions' | 'record' | 'poll'>;

type Observe = (upstream: string, observation: Finalized) => Promise<Observation>;

/** Opens the chain of each upstream, and logs its changes. */
export function openChains(deps: ChainsDeps) {
  const { upstreams, clock, random, log, version, genesis } = deps;
  // Without addresses in the settings, a chain does nothing.
  const chains = new Map(
    upstreams.map(([upstream, { chain: settings }]) => {
      const chain = openChain({
        ...{ settings, clock, random, version },
        genesisHash: genesis.of(upstream),
        onChange({ host: node, name, problem }) {
          if (problem !== null) log.warn({ upstream, node, reason: problem }, 'chain.unavailable');
          else log.info({ upstream, node, chain: name ?? undefined }, 'chain.connected');
        },
      });
      const queue = new VerificationQueue({ ...deps, upstream, chain, settings });
      return [upstream, { chain, queue }] as const;
    }),
  );
  const confirmed = new Set<string>();
  const observe: Observe = (upstream, observation) =>
    chains.get(upstream)?.queue.observe(observation) ?? Promise.resolve(observation);
  return {
    observe,
    /** Calls `listener` with the newest finalized block, and with the next ones. */
    onHead(listener: (upstream: string, head: ChainHead) => void): void {
      for (const [upstream, { chain }] of chains) {
        chain.onHead((head) => listener(upstream, head));
        const head = chain.status()?.head;
        if (head) listener(upstream, head);
      }
    },
    start(): void {
      for (const { queue } of chains.values()) queue.start();
    },
    statusOf: (upstream: string): ChainStatus | null =>
      chains.get(upstream)?.chain.status() ?? null,
    /** A node has confirmed a block of the upstream. */
    confirm(upstream: string): void {
      if (confirmed.has(upstream)) return;
      const hash = chains.get(upstream)?.chain.confirm() ?? null;
      if (hash !== null) genesis.keep(upstream, hash);
      confirmed.add(upstream);
    },
    /** Returns all nodes with a problem, and since when. */
    unusedNodes: () =>
      [...chains].flatMap(([upstream, { chain }]) =>
        (chain.status()?.nodes ?? []).flatMap(({ host, problem, unusedSince: since }) =>
          problem === null || since === null ? [] : { upstream, host, problem, since },
        ),
      ),
    async close(): Promise<void> {
      for (const { queue } of chains.values()) queue.stop();
      await Promise.all([...chains.values()].map(({ chain }) => chain.close()));
    },
  };
}

/** Reports finalized submissions with what their chain says: its verdict, and since when. */
export function chainEngine(engine: PollEngine, observe: Observe): PollEngine {
  return {
    async poll(batch, report) {
      const observed: Promise<void>[] = [];
      await engine.poll(batch, (observation) => {
        if (observation.kind !== 'finalized') report(observation);
        else observed.push(observe(batch.upstream, observation).then(report));
      });
      await Promise.all(observed);
    },
  };
}
