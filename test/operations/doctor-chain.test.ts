import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runDoctor } from '../../src/wiring/doctor.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';
import { openNode, usualNode } from '../support/servers/node-server.ts';
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

  it('shows the newest block of each node, so that an operator compares them', async () => {
    const [node, late] = [await openNode({ head: 9 }), await openNode({ head: 8 })];
    expect(await examine([node.url, late.url])).toEqual([
      `ok ${node.host} works: Test Chain, block 9 is final`,
      `ok ${late.host} works: Test Chain, block 8 is final`,
    ]);
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

  it('warns of a node of another chain than before', async () => {
    const node = await openNode();
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
