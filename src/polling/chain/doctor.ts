import { setTimeout as wait } from 'node:timers/promises';
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
import { mostCommon } from './finalized-heads.ts';
import { type Chain, ChainError, type ChainSettings, type ChainStatus } from './port.ts';

/** What the ledger knows about a chain: the hash of block 0, and the upstream's newest block. */
export type KnownChain = { genesisHash: string | null; blockNumber: number | null };

/** Time for which nodes may differ in their newest block: announcements take some 100 ms. */
const SETTLE_MS = 3_000;
const SETTLE_STEP_MS = 100;

type Examined = { chain: Chain; host: string; trouble: string | null };

/** Connects to each node by itself, and compares them with one another and with the upstream. */
export async function checkNodes(
  upstream: string,
  settings: ChainSettings,
  { known, file, limitMs }: { known: KnownChain; file: string; limitMs: number },
): Promise<Finding[]> {
  const about = `chain.${upstream}`;
  const urls = settingName(`upstreams.${upstream}.chain.urls`);
  const examine = async (url: string): Promise<Examined> => {
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const chain = openChain({
      settings: { ...settings, urls: [url] },
      ...{ clock: systemClock, random: Math.random, version: VERSION },
      genesisHash: known.genesisHash,
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
    const working = nodes.filter(({ trouble }) => trouble === null);
    await settle(working, Math.min(limitMs, SETTLE_MS));
    const differences = await differencesOf(working, known.blockNumber);
    return nodes.map(({ chain, host, trouble }) => {
      const { name, head, nodes } = chain.status() as ChainStatus;
      const difference = differences.get(host);
      if (trouble === null && difference === undefined)
        return ok(about, `${host} works: ${name ?? 'no name'}, block ${head?.number} is final`);
      if (trouble === null)
        return warning(
          about,
          `${host} ${difference}`,
          'compare it with a block explorer, and use a node that is up to date; `finality_at` is late by the lag of the nodes',
        );
      if (nodes[0]?.state === 'another_chain')
        return warning(
          about,
          `${host}: ${trouble}, that of the blocks that were verified before; it is not used`,
          `verify ${urls}. If the chain was replaced on purpose, stop the server, and forget the old one: sqlite3 ${file} "DELETE FROM meta WHERE key = 'genesis:${upstream}'"`,
        );
      const action = `verify ${urls}, and that the node runs and offers WebSocket`;
      return settings.verify === 'require' && working.length === 0
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
    const number = headOf(chain);
    const hash = await hashOf(chain, number);
    const { hashes, proof } = await new Blocks(chain, systemClock).of(number, String(hash));
    if (hashes === null) return 'it does not have the content of its newest final block';
    return typeof proof === 'string' ? proof : null;
  } catch (error) {
    if (error instanceof ChainError) return error.message;
    throw error;
  }
}

async function settle(nodes: readonly Examined[], limitMs: number): Promise<void> {
  for (let waitedMs = 0; waitedMs < limitMs; waitedMs += SETTLE_STEP_MS) {
    if (new Set(nodes.map(({ chain }) => headOf(chain))).size <= 1) return;
    await wait(SETTLE_STEP_MS);
  }
}

/** Returns in what nodes differ from the others or from the upstream, by host. */
async function differencesOf(
  nodes: readonly Examined[],
  upstreamBlock: number | null,
): Promise<ReadonlyMap<string, string>> {
  const heads = nodes.map(({ chain }) => headOf(chain));
  const highest = Math.max(...heads, upstreamBlock ?? 0);
  const source = nodes[heads.indexOf(highest)]?.host ?? 'the upstream, which has reported it';
  const common = Math.min(...heads);
  const hashes = await Promise.all(
    nodes.map(({ chain }) => hashOf(chain, common).catch(() => undefined)),
  );
  const usual = mostCommon(hashes);
  const differences = nodes.map(({ host }, index): [string, string] | undefined => {
    const hash = hashes[index];
    const behind = highest - (heads[index] as number);
    if (hash !== usual) {
      const other = nodes[hashes.indexOf(usual ?? undefined)]?.host;
      return [host, `has ${hash ?? 'nothing'} as block ${common}, and ${other} has ${usual}`];
    }
    if (behind === 0) return undefined;
    return [
      host,
      `is ${behind} ${behind === 1 ? 'block' : 'blocks'} behind: block ${heads[index]} is its newest final one, and ${highest} that of ${source}`,
    ];
  });
  return new Map(differences.filter((difference) => difference !== undefined));
}

async function hashOf(chain: Chain, number: number): Promise<string | undefined> {
  const { result } = await chain.call('chain_getBlockHash', [number]);
  return typeof result === 'string' ? result.toLowerCase() : undefined;
}

function headOf(chain: Chain): number {
  return chain.status()?.head?.number ?? -1;
}
