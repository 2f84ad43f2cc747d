import type { NodesName } from './heads.ts';
import { meanOf, median, type Summary } from './summary.ts';

/** Returns the summaries of all seeds; none if the policy was not measured. */
export type Results = (policy: string, nodes: NodesName) => readonly Summary[];

/** An upper limit for dawatch. `value`: NaN if it was not measured. */
export type Bar = { name: string; value(results: Results): number; limit: number };

type Figure = 'requests' | 'meanS' | 'p99S' | 'throttled';

const policyWith = (nodes: NodesName) => (nodes === 'none' ? 'dawatch' : 'dawatch+chain');

const costOf = (results: Results, nodes: NodesName, part: (run: Summary) => { cost: number }) =>
  meanOf(results(policyWith(nodes), nodes).map((run) => part(run).cost));

/** The mean cost of the seeds, without a node and with a healthy one. */
export function costAtMost(limits: readonly [none: number, healthy: number]): Bar[] {
  return (['none', 'healthy'] as const).map((nodes, index) => ({
    name: `mean cost, node: ${nodes}`,
    limit: limits[index] as number,
    value: (results) => costOf(results, nodes, (run) => run),
  }));
}

/** The median of the seeds. */
export function atMost(nodes: NodesName, figure: Figure, limit: number): Bar {
  return {
    name: `median ${figure}, node: ${nodes}`,
    limit,
    value: (results) => median(results(policyWith(nodes), nodes).map((run) => run[figure])),
  };
}

/** All seeds but the worst. */
export function inElevenOfTwelve(nodes: NodesName, figure: Figure, limit: number): Bar {
  return {
    name: `${figure} of all seeds but one, node: ${nodes}`,
    limit,
    value: (results) =>
      results(policyWith(nodes), nodes)
        .map((run) => run[figure])
        .sort((a, b) => a - b)
        .at(-2) ?? Number.NaN,
  };
}

export function faultyNodeBars(nodes: NodesName): Bar[] {
  return [
    {
      name: `mean cost from minute five on / without a node, node: ${nodes}`,
      limit: 1.1,
      value: (results) =>
        costOf(results, nodes, (run) => run.fromMinuteFive) /
        costOf(results, 'none', (run) => run.fromMinuteFive),
    },
    {
      name: `mean cost of the first five minutes − without a node, node: ${nodes}`,
      limit: 1,
      value: (results) =>
        costOf(results, nodes, (run) => run.firstFiveMinutes) -
        costOf(results, 'none', (run) => run.firstFiveMinutes),
    },
  ];
}

export function secondNodeBar(alone: NodesName, both: NodesName): Bar {
  return {
    name: `mean cost / that of ${alone} alone, node: ${both}`,
    limit: 1,
    value: (results) => costOf(results, both, (run) => run) / costOf(results, alone, (run) => run),
  };
}
