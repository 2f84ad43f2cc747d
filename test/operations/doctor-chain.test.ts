import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runDoctor } from '../../src/wiring/doctor.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { context, finalEnvelope, observation, VERDICTS } from '../support/ledger/domain.ts';
import { openLedger, trackRequest } from '../support/ledger/ledger-file.ts';
import { GENESIS, openNode, usualNode } from '../support/servers/node-server.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

type Options = { verify?: 'report' | 'require'; verify_data?: boolean; limitMs?: number };

/** Returns the findings about the chain. `file`: of the ledger. */
async function examine(
  urls: string[],
  { limitMs = 60_000, ...chain }: Options = {},
  file = join(tempFolder(), 'dawatch.db'),
) {
  const upstream = await serve((_, response) => response.end());
  const env = {
    DAWATCH_UPSTREAM_URL: upstream.url,
    DAWATCH_CHAIN_URL: urls.join(','),
    DAWATCH_DATABASE: file,
  };
  const loaded = loadConfig({ env, file: null });
  Object.assign(loaded.config.upstreams.default.chain, chain);
  const findings = await runDoctor({ loaded, now: 0, full: false, limitMs, features: [] });
  return findings
    .filter(({ name }) => name === 'chain.default')
    .map(({ status, message, action }) => `${status} ${message}${action ? `; ${action}` : ''}`);
}

describe('the doctor and the nodes of the chain:', () => {
  it('shows the chain, and its newest finalized block', async () => {
    const { url, host } = await openNode({ head: 9 });
    expect(await examine([url])).toEqual([`ok ${host} works: Test Chain, block 9 is final`]);
  });

  it('checks each address, and never shows a secret', async () => {
    const dead = (await deadAddress()).replace('http', 'ws');
    const { url } = await openNode();
    const findings = await examine([`${dead}/?key=a-secret-key-of-the-node`, url]);
    expect(findings).toEqual([
      expect.stringMatching(/^warning .*: the connection was refused; polling works as without/),
      expect.stringMatching(/^ok /),
    ]);
    expect(JSON.stringify(findings)).not.toContain('a-secret-key');
  });

  it('has a problem if submissions wait for a node that does not work', async () => {
    const page = await serve((_, response) => response.end('<html>'));
    expect(await examine([page.url.replace('http', 'ws')], { verify: 'require' })).toEqual([
      expect.stringMatching(/^problem .* HTTP 200 instead of a WebSocket; submissions wait/),
    ]);
  });

  it.each([
    ['responds', { respond: 'never' as const }],
    ['announces a block', { head: null }],
  ])('has a time limit for a node that never %s', async (_, options) => {
    const { url } = await openNode(options);
    expect(await examine([url], { limitMs: 300 })).toEqual([
      expect.stringMatching(/announces no finalized block within 0\.3 s/),
    ]);
  });

  it('warns of a node that is a block behind another one', async () => {
    const [node, late] = [await openNode({ head: 9 }), await openNode({ head: 8 })];
    expect(await examine([node.url, late.url])).toEqual([
      expect.stringMatching(/^ok /),
      expect.stringMatching(
        `^warning ${late.host} is 1 block behind: block 8 is its newest final one, and 9 that of ${node.host};`,
      ),
    ]);
  });

  it('warns of a node that is behind the upstream', async () => {
    const ledger = openLedger();
    ledger.track([trackRequest('a')], 0);
    const envelope = JSON.stringify(finalEnvelope({ block_number: 11 }));
    ledger.record([observation({ ...VERDICTS.finalized, envelope }, 1, 'a')], context());
    const { url } = await openNode({ head: 9 });
    expect(await examine([url], {}, ledger.database.file)).toEqual([
      expect.stringMatching(
        /is 2 blocks behind: block 9 is its newest final one, and 11 that of the upstream/,
      ),
    ]);
  });

  it('warns of a node with another block, and of another chain than before', async () => {
    const respond = (method: string, [number]: unknown[]) =>
      method === 'chain_getBlockHash' && number !== 0
        ? { result: `0x${'7'.repeat(64)}` }
        : usualNode(method);
    const [node, other] = [await openNode(), await openNode({ respond })];
    expect(await examine([node.url, other.url])).toEqual([
      expect.stringMatching(/^ok /),
      expect.stringMatching(`${other.host} has 0x7+ as block 1, and ${node.host} has ${GENESIS}`),
    ]);
    const ledger = openLedger();
    ledger.upstreams.keepGenesisHash('default', `0x${'6'.repeat(64)}`);
    const [finding] = await examine([node.url], {}, ledger.database.file);
    expect(finding).toMatch(
      /^warning .*: it belongs to another chain: its block 0 is 0x9+, not 0x6/,
    );
    expect(finding).toContain(`"DELETE FROM meta WHERE key = 'genesis:default'"`);
  });

  it.each([
    ['chain_getBlockHash', {}],
    ['chain_subscribeFinalizedHeads', {}],
    ['chain_getBlock', { verify_data: true }],
  ])('has a finding about a node without %s', async (missing, settings) => {
    const respond = (method: string) => usualNode(method === missing ? 'unknown' : method);
    const { url } = await openNode({ respond });
    expect(await examine([url], settings)).toEqual([
      expect.stringMatching(`^warning .*: it does not offer ${missing}`),
    ]);
  });
});
