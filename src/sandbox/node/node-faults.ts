import { z } from 'zod';

/** Faults of the chain's node, with what `dawatch sandbox --help` says about each. */
const NODE_FAULTS = {
  none: 'works',
  silent: 'sends no heads',
  lagging: 'is late by --node-fault-s',
  closing: 'closes each connection after --node-fault-s',
  lying: 'has wrong hashes for all blocks but the first',
  early: 'announces blocks as final when they are produced',
  duplicate: 'sends each head twice',
  disordered: 'sends each second head before the first',
  skipping: 'sends each third head only',
  pruned: 'has no bodies of blocks older than --node-fault-s',
  other_chain: 'belongs to another chain',
} as const;

type NodeFaultKind = keyof typeof NODE_FAULTS;
export const NODE_FAULT_KINDS = Object.keys(NODE_FAULTS) as [NodeFaultKind, ...NodeFaultKind[]];

/** `seconds`: of the upstream's clock, for faults with a time. */
export type NodeFault = { kind: NodeFaultKind; seconds: number };

export const nodeFaultFields = {
  nodeFault: z
    .enum(NODE_FAULT_KINDS)
    .default('none')
    .describe(
      `Fault of the chain's node: ${Object.entries(NODE_FAULTS)
        .map(([kind, text]) => `${kind} = ${text}`)
        .join(', ')}.`,
    ),
  nodeFaultS: z
    .number()
    .positive()
    .default(60)
    .describe('Seconds of the node faults lagging, closing and pruned.'),
};
