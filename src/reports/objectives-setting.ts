import type { Config } from '../operations/config/schema.ts';
import type { Objective } from '../submissions/objective.ts';

/** Returns the service level objectives by upstream. */
export function objectivesOf({
  slo,
  upstreams,
}: Pick<Config, 'slo' | 'upstreams'>): Map<string, Objective> {
  const objectives = Object.entries(upstreams)
    .filter(([, { url }]) => url !== undefined)
    .map(([name, { slo: own }]): [string, Objective] => [
      name,
      {
        target: (own.target_percent ?? slo.target_percent) / 100,
        withinMs: (own.within_s ?? slo.within_s) * 1_000,
      },
    ]);
  return new Map(objectives.filter(([, { target }]) => target > 0));
}
