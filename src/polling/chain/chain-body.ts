import { z } from 'zod';
import { timeSchema } from '../../http/typed-server.ts';
import { iso } from '../../lib/clock.ts';
import type { ChainStatus } from './port.ts';

const stateSchema = z
  .enum(['connected', 'unavailable'])
  .describe(
    'connected: a node announces finalized blocks; unavailable: none does, so polls follow the learned distribution',
  )
  .meta({ id: 'ChainState' });

export const chainSchema = z
  .object({
    state: stateSchema,
    node: z.string().describe('Host of the node, or of the one that is tried next'),
    name: z.string().nullable().describe('Name of the chain; null if not known'),
    genesis_hash: z
      .string()
      .nullable()
      .describe('Hash of block 0, which identifies the chain; null if not known'),
    block_number: z
      .int()
      .nullable()
      .describe('Highest block that was announced as final; null if there was none'),
    block_at: timeSchema.nullable().describe('When it was announced'),
    problem: z.string().nullable().describe('Newest problem of a node; null if there is none'),
  })
  .describe('The node of the chain')
  .meta({ id: 'ChainStatus' });

export type ChainBody = z.output<typeof chainSchema>;

export function chainState({ nodes }: ChainStatus): ChainBody['state'] {
  return nodes.some(({ isConnected }) => isConnected) ? 'connected' : 'unavailable';
}

export function toChainBody(status: ChainStatus): ChainBody {
  const { nodes, name, genesisHash, head, problem } = status;
  return {
    state: chainState(status),
    node: nodes[0]?.host ?? '',
    name,
    genesis_hash: genesisHash,
    block_number: head?.number ?? null,
    block_at: head && iso(head.at),
    problem,
  };
}
