import { z } from 'zod';
import { timeSchema } from '../../http/typed-server.ts';
import { iso } from '../../lib/clock.ts';
import { type ChainHead, type ChainStatus, NODE_STATES } from './port.ts';

const stateSchema = z
  .enum(['connected', 'unavailable'])
  .describe(
    'connected: a node that is used announces finalized blocks; unavailable: none does, so polls follow the learned distribution',
  )
  .meta({ id: 'ChainState' });

const nodeSchema = z
  .object({
    host: z.string().describe('Host and port'),
    state: z
      .enum(NODE_STATES)
      .describe(
        'used: it is connected and trusted; connecting: it has announced no block yet; disconnected: the connection failed. The others are not trusted: another_chain: its block 0 is another one; early: it announces blocks before they are final; behind: it announces them later than the others; another_block: its blocks differ from those of the others',
      )
      .meta({ id: 'ChainNodeState' }),
    block_number: z.int().nullable().describe('Highest block that it announced as final'),
    block_at: timeSchema.nullable().describe('When it did'),
    problem: z.string().nullable().describe('Why it is not used; null if it is, or is connecting'),
  })
  .describe('A node of the chain')
  .meta({ id: 'ChainNode' });

export const chainSchema = z
  .object({
    state: stateSchema,
    name: z.string().nullable().describe('Name of the chain; null if not known'),
    genesis_hash: z
      .string()
      .nullable()
      .describe('Hash of block 0, which identifies the chain; null if not known'),
    block_number: z
      .int()
      .nullable()
      .describe('Highest block that a trusted node announced as final; null if there was none'),
    block_at: timeSchema.nullable().describe('When it was announced'),
    nodes: z.array(nodeSchema).describe('In the order of the settings'),
  })
  .describe('The nodes of the chain')
  .meta({ id: 'ChainStatus' });

export type ChainBody = z.output<typeof chainSchema>;

export function chainState({ nodes }: ChainStatus): ChainBody['state'] {
  return nodes.some(({ state }) => state === 'used') ? 'connected' : 'unavailable';
}

export function toChainBody(status: ChainStatus): ChainBody {
  const { nodes, name, genesisHash, head } = status;
  return {
    state: chainState(status),
    name,
    genesis_hash: genesisHash,
    ...headBody(head),
    nodes: nodes.map(({ host, state, head, problem }) => {
      return { host, state, ...headBody(head), problem };
    }),
  };
}

function headBody(head: ChainHead | null) {
  return { block_number: head?.number ?? null, block_at: head && iso(head.at) };
}
