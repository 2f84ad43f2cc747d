import type { PollEngine } from '../../submissions/ports.ts';
import type { ChainVerifier } from './verifier.ts';

/** Reports finalized submissions with the verdict of their chain. */
export function verifyingEngine(
  engine: PollEngine,
  verifierOf: (upstream: string) => ChainVerifier | undefined,
): PollEngine {
  return {
    async poll(batch, report) {
      const verifications: Promise<void>[] = [];
      await engine.poll(batch, (observation) => {
        const verifier = verifierOf(batch.upstream);
        if (observation.kind === 'finalized' && verifier?.isOn)
          verifications.push(verifier.observe(observation).then(report));
        else report(observation);
      });
      await Promise.all(verifications);
    },
  };
}
