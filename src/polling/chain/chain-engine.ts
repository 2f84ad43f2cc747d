import type { Observation } from '../../submissions/classify.ts';
import type { PollEngine } from '../poll-engine.ts';
import type { Chain } from './port.ts';
import type { ChainVerifier } from './verifier.ts';

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
        if (observation.kind === 'finalized' && verifier?.isOn)
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
