import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../operations/logging/event-catalog.ts';
import type { Observation } from '../../submissions/classify.ts';
import type { PollEngine } from '../poll-engine.ts';
import type { UsableUpstream } from '../upstreams.ts';
import { openChain } from './chain.ts';
import type { Chain, ChainHead, ChainStatus } from './port.ts';
import { type QueueDeps, VerificationQueue } from './verification-queue.ts';
import { ChainVerifier } from './verifier.ts';

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

export type Chains = {
  /** By upstream. Without addresses in the settings, a chain does nothing. */
  byUpstream: ReadonlyMap<string, Chain>;
  verifierOf(upstream: string): ChainVerifier | undefined;
  /** Calls `listener` with the newest finalized block, and with the next ones. */
  onHead(listener: (upstream: string, head: ChainHead) => void): void;
  /** Begins to verify what the ledger has in verification. */
  start(): void;
  statusOf(upstream: string): ChainStatus | null;
  /** A node has confirmed a block of the upstream. */
  confirm(upstream: string): void;
  /** Returns all nodes with a problem, and since when. */
  unusedNodes(): { upstream: string; host: string; problem: string; since: number }[];
  close(): Promise<void>;
};

/** Opens the chain of each upstream, and logs its changes. */
export function openChains(deps: ChainsDeps): Chains {
  const { upstreams, clock, random, log, version, genesis, submissions } = deps;
  const byUpstream = new Map(
    upstreams.map(([upstream, { chain: settings }]) => {
      const chain = openChain({
        ...{ settings, clock, random, version },
        genesisHash: genesis.of(upstream),
        onChange({ host: node, name, problem }) {
          if (problem !== null) log.warn({ upstream, node, reason: problem }, 'chain.unavailable');
          else log.info({ upstream, node, chain: name ?? undefined }, 'chain.connected');
        },
      });
      return [upstream, chain] as const;
    }),
  );
  const verifiers = new Map(
    upstreams.flatMap(([upstream, { chain: settings }]) => {
      const chain = byUpstream.get(upstream);
      if (!chain) return [];
      const dataHashOf = (id: string) => submissions.dataHashOf(id);
      return [[upstream, new ChainVerifier({ chain, settings, clock, dataHashOf })] as const];
    }),
  );
  const confirmed = new Set<string>();
  const queues = [...verifiers].map(([upstream, verifier]) => {
    const chain = byUpstream.get(upstream) as Chain;
    return new VerificationQueue({ ...deps, upstream, chain, verifier });
  });
  return {
    byUpstream,
    verifierOf: (upstream) => verifiers.get(upstream),
    onHead(listener) {
      for (const [upstream, chain] of byUpstream) {
        chain.onHead((head) => listener(upstream, head));
        const head = chain.status()?.head;
        if (head) listener(upstream, head);
      }
    },
    start() {
      for (const queue of queues) queue.start();
    },
    statusOf: (upstream) => byUpstream.get(upstream)?.status() ?? null,
    confirm(upstream) {
      if (confirmed.has(upstream)) return;
      const hash = byUpstream.get(upstream)?.confirm() ?? null;
      if (hash !== null) genesis.keep(upstream, hash);
      confirmed.add(upstream);
    },
    unusedNodes: () =>
      [...byUpstream].flatMap(([upstream, chain]) =>
        (chain.status()?.nodes ?? []).flatMap(({ host, problem, unusedSince: since }) =>
          problem === null || since === null ? [] : { upstream, host, problem, since },
        ),
      ),
    async close() {
      for (const queue of queues) queue.stop();
      await Promise.all([...byUpstream.values()].map((chain) => chain.close()));
    },
  };
}

/** Reports finalized submissions with what their chain says: its verdict, and since when. */
export function chainEngine(
  engine: PollEngine,
  chains: {
    byUpstream: ReadonlyMap<string, Pick<Chain, 'finalizedAt'>>;
    verifierOf(upstream: string): ChainVerifier | undefined;
  },
): PollEngine {
  return {
    async poll(batch, report) {
      const { upstream } = batch;
      const verifications: Promise<void>[] = [];
      const reportWithTime = (observation: Observation) =>
        report(withFinality(observation, chains.byUpstream.get(upstream)));
      await engine.poll(batch, (observation) => {
        const verifier = chains.verifierOf(upstream);
        if (observation.kind === 'finalized' && verifier)
          verifications.push(verifier.observe(observation).then(reportWithTime));
        else reportWithTime(observation);
      });
      await Promise.all(verifications);
    },
  };
}

/** Adds the time of finality, unless no node announced the block, or the chain has another one. */
function withFinality(
  observation: Observation,
  chain: Pick<Chain, 'finalizedAt'> | undefined,
): Observation {
  if (observation.kind !== 'finalized' || observation.blockNumber === null) return observation;
  if (observation.chain?.verdict === 'contradicted') return observation;
  const finalityAt = chain?.finalizedAt(observation.blockNumber) ?? null;
  return finalityAt === null ? observation : { ...observation, finalityAt };
}
