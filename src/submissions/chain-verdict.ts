/** What a node of the chain says about the block that the upstream names. */
export const CHAIN_VERDICTS = ['confirmed', 'contradicted', 'unavailable'] as const;
export type ChainVerdict = (typeof CHAIN_VERDICTS)[number];

/** `reason`: why it is not confirmed, in one sentence; null: it is confirmed. */
export type ChainResult = { verdict: ChainVerdict; reason: string | null };

/** The end of the reason if most blocks contradict. */
export const ANOTHER_CHAIN = 'the node probably belongs to another chain';
