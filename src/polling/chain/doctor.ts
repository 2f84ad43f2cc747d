import { systemClock } from '../../lib/clock.ts';
import {
  type Finding,
  ok,
  problem,
  settingName,
  warning,
} from '../../operations/doctor/finding.ts';
import { VERSION } from '../../operations/version.ts';
import { Blocks } from './blocks.ts';
import { openChain } from './chain.ts';
import { type Chain, ChainError, type ChainSettings, type ChainStatus } from './port.ts';

type Examined = { chain: Chain; host: string; trouble: string | null };

/** Connects to each node by itself. `genesisHash`: that in the ledger; null: not known. */
export async function checkNodes(
  upstream: string,
  settings: ChainSettings,
  { genesisHash, file, limitMs }: { genesisHash: string | null; file: string; limitMs: number },
): Promise<Finding[]> {
  const about = `chain.${upstream}`;
  const urls = settingName(`upstreams.${upstream}.chain.urls`);
  const examine = async (url: string): Promise<Examined> => {
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const chain = openChain({
      settings: { ...settings, urls: [url] },
      ...{ clock: systemClock, random: Math.random, version: VERSION },
      genesisHash,
      onChange: (node) => resolve(node.problem),
    });
    const limit = `within ${limitMs / 1_000} s`;
    const cancel = systemClock.after(limitMs, () =>
      resolve(`it announces no finalized block ${limit}`),
    );
    const failure = await promise;
    cancel();
    const { host = '', problem = null } = chain.status()?.nodes[0] ?? {};
    const trouble = failure ?? problem ?? (await missingBlock(chain, settings));
    return { chain, host, trouble };
  };
  const nodes = await Promise.all(settings.urls.map(examine));
  try {
    const areAllUnusable = nodes.every(({ trouble }) => trouble !== null);
    return nodes.map(({ chain, host, trouble }) => {
      const { name, head, nodes } = chain.status() as ChainStatus;
      if (trouble === null)
        return ok(about, `${host} works: ${name ?? 'no name'}, block ${head?.number} is final`);
      if (nodes[0]?.state === 'another_chain')
        return warning(
          about,
          `${host}: ${trouble}, that of the blocks that were verified before; it is not used`,
          `verify ${urls}. If the chain was replaced on purpose, stop the server, and forget the old one: sqlite3 ${file} "DELETE FROM meta WHERE key = 'genesis:${upstream}'"`,
        );
      const action = `verify ${urls}, and that the node runs and offers WebSocket`;
      return settings.verify === 'require' && areAllUnusable
        ? problem(
            about,
            `${host}: ${trouble}; submissions wait for it, because verify is require`,
            action,
          )
        : warning(about, `${host}: ${trouble}; polling works as without this node`, action);
    });
  } finally {
    await Promise.all(nodes.map(({ chain }) => chain.close()));
  }
}

/** Returns why a node cannot serve the blocks that the settings need; null: it can. */
async function missingBlock(chain: Chain, settings: ChainSettings): Promise<string | null> {
  if (settings.verify === 'off' || !settings.verify_data) return null;
  try {
    const number = chain.status()?.head?.number ?? -1;
    const { result } = await chain.call('chain_getBlockHash', [number]);
    const hash = String(result).toLowerCase();
    const { hashes, proof } = await new Blocks(chain, systemClock).of(number, hash);
    if (hashes === null) return 'it does not have the content of its newest final block';
    return typeof proof === 'string' ? proof : null;
  } catch (error) {
    if (error instanceof ChainError) return error.message;
    throw error;
  }
}
