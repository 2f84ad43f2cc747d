import { systemClock } from '../../lib/system-clock.ts';
import { openChain } from '../../polling/chain/chain.ts';
import type { Chain, ChainSettings } from '../../polling/chain/port.ts';
import { normalized } from '../../polling/chain/verifier.ts';
import { VERSION } from '../version.ts';
import { type Finding, ok, problem, settingName, warning } from './finding.ts';
import type { FinalBlock } from './ledger.ts';

/** Age of the newest finalized block above which the chain counts as stopped. */
const MAX_AGE_MS = 5 * 60_000;
/** The storage item `Timestamp.Now` of Substrate: milliseconds, 64 bits, little-endian. */
export const TIMESTAMP_KEY = '0xf0c365c3cf59d671eb72da0e7a4113c49f1f0515f462cdcf84e0f1d6045dfcbb';

type ChainCheck = {
  name: string;
  settings: ChainSettings;
  /** Blocks of recently finalized submissions of the upstream. */
  finals: readonly FinalBlock[];
  now: number;
  limitMs: number;
};

/** Checks each node of the chain: its subscription, its newest block, and blocks of the ledger. */
export async function checkNodes(check: ChainCheck): Promise<Finding[]> {
  const findings = await Promise.all(check.settings.urls.map((url) => checkNode(check, url)));
  return findings.flat();
}

async function checkNode(check: ChainCheck, url: string): Promise<Finding[]> {
  const { name, settings, limitMs } = check;
  const about = `chain.${name}`;
  const { host } = new URL(url);
  const { chain, trouble } = await connect({ ...settings, urls: [url] }, limitMs);
  try {
    if (trouble === undefined) return await checkAnswers(check, chain, host);
    const action = `verify ${settingName(`upstreams.${name}.chain.urls`)}, and that the node runs and offers WebSocket`;
    if (settings.verify === 'require' && settings.urls.length === 1) {
      const message = `${trouble}; submissions wait for the chain, because verify is require`;
      return [problem(about, message, action)];
    }
    return [warning(about, `${trouble}; polling works as without this node`, action)];
  } finally {
    await chain.close();
  }
}

/** Resolves when the node has announced a block, or cannot. */
async function connect(
  settings: ChainSettings,
  limitMs: number,
): Promise<{ chain: Chain; trouble: string | undefined }> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const chain = openChain({
    version: VERSION,
    settings,
    clock: systemClock,
    random: Math.random,
    onChange: ({ problem }) => {
      if (problem !== null) resolve(problem);
    },
  });
  chain.onHead(() => resolve(undefined));
  const cancel = systemClock.after(limitMs, () => {
    const { host = '', isConnected } = chain.status() ?? {};
    const missing = isConnected ? 'announces no finalized block' : 'does not respond';
    resolve(`${host}: it ${missing} within ${limitMs / 1_000} s`);
  });
  const trouble = await promise;
  cancel();
  return { chain, trouble };
}

async function checkAnswers(
  { name, finals, now }: ChainCheck,
  chain: Chain,
  host: string,
): Promise<Finding[]> {
  const about = `chain.${name}`;
  const status = chain.status();
  const chainName = status?.name ?? 'a chain without a name';
  const newest = `${host} works: ${chainName}, block ${status?.head?.number} is final`;
  const ageMs = await ageOf(chain, now);
  const message = ageMs === null ? newest : `${newest}, ${Math.round(ageMs / 1_000)} s old`;
  const age =
    ageMs !== null && ageMs > MAX_AGE_MS
      ? warning(about, message, 'the node is behind, or the chain has stopped to finalize blocks')
      : ok(about, message);
  return [age, ...(await checkFinals(about, { finals, chain, host }))];
}

/** Returns the age of the newest finalized block by its own time; null if the node hides it. */
async function ageOf(chain: Chain, now: number): Promise<number | null> {
  try {
    const hash = await chain.call<unknown>('chain_getFinalizedHead', []);
    const stored = await chain.call<unknown>('state_getStorage', [TIMESTAMP_KEY, hash]);
    if (typeof stored !== 'string' || !/^0x[0-9a-f]{16}$/i.test(stored)) return null;
    const at = Number(Buffer.from(stored.slice(2), 'hex').readBigUInt64LE());
    return Math.max(0, now - at);
  } catch {
    return null;
  }
}

/** Compares blocks of the ledger with those of the node. */
async function checkFinals(
  about: string,
  { finals, chain, host }: { finals: readonly FinalBlock[]; chain: Chain; host: string },
): Promise<Finding[]> {
  const settled = await Promise.allSettled(
    finals.map(({ blockNumber }) => chain.call<unknown>('chain_getBlockHash', [blockNumber])),
  );
  // A node without this block may be behind, or has deleted it.
  const compared = settled.flatMap((result, index) =>
    result.status === 'fulfilled' && typeof result.value === 'string'
      ? [normalized(result.value) === normalized(finals[index]?.blockHash)]
      : [],
  );
  if (compared.length === 0) return [];
  const equal = compared.filter(Boolean).length;
  const message = `${equal} of the ${compared.length} newest blocks of final submissions are on the chain of ${host}`;
  if (equal === compared.length) return [ok(about, message)];
  const action =
    equal === 0
      ? 'the node belongs to another chain than the upstream: correct upstreams.<name>.chain.urls'
      : 'notify the operator of the upstream: it names blocks that are not final';
  return [problem(about, message, action.replace('<name>', about.replace('chain.', '')))];
}
