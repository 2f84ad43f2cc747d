import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/operations/config/load.ts';
import { runDoctor } from '../../src/operations/doctor/run-doctor.ts';
import { context, finalEnvelope, observation, VERDICTS } from '../support/ledger/domain.ts';
import { openLedger, trackRequest } from '../support/ledger/ledger-file.ts';
import { announce, openNode, usualNode } from '../support/servers/node-server.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const NOW = 1_760_000_000_000;
const HASHES = ['a', 'b'].map((digit) => `0x${digit.repeat(64)}`);

/** A node whose newest block is number 9, and whose blocks have these hashes. */
function node({ ageMs = 12_000, hashes = HASHES }: { ageMs?: number; hashes?: unknown[] } = {}) {
  const time = Buffer.alloc(8);
  time.writeBigUInt64LE(BigInt(NOW - ageMs));
  return openNode({
    respond(method, [parameter]) {
      if (method === 'chain_getFinalizedHead') return { result: '0x09' };
      if (method === 'state_getStorage') return { result: `0x${time.toString('hex')}` };
      if (method === 'chain_getBlockHash' && parameter !== 0)
        return { result: hashes[Number(parameter) - 1] ?? null };
      return usualNode(method);
    },
    onSubscribe: (socket) => announce(socket, 9),
  });
}

/** A ledger with two finalized submissions, in the blocks 1 and 2. */
function ledgerWithFinals(): string {
  const ledger = openLedger();
  const ids = ['first', 'second'];
  ledger.track(
    ids.map((id) => trackRequest(id)),
    0,
  );
  const found = ids.map((id, index) => {
    // Some upstreams omit 0x.
    const block = { block_number: index + 1, block_hash: HASHES[index]?.replace('0x', '') };
    const envelope = JSON.stringify(finalEnvelope(block));
    return observation({ ...VERDICTS.finalized, envelope }, 1, id);
  });
  ledger.record(found, context(), new Map());
  return ledger.file;
}

/** Returns the findings about the chain. */
async function examine(
  urls: string[],
  { database = join(tempFolder(), 'dawatch.db'), verify = 'report', limitMs = 5_000 } = {},
) {
  const upstream = await serve((_, response) => response.end());
  const env = {
    DAWATCH_UPSTREAM_URL: upstream.url,
    DAWATCH_CHAIN_URL: urls.join(','),
    DAWATCH_DATABASE: database,
  };
  const loaded = loadConfig({ env, file: null });
  loaded.config.upstreams.default.chain.verify = verify as 'report' | 'require';
  const findings = await runDoctor({ loaded, now: NOW, full: false, limitMs, features: [] });
  return findings
    .filter(({ name }) => name === 'chain.default')
    .map(({ status, message, action }) => `${status} ${message}${action ? `; ${action}` : ''}`);
}

describe('the doctor and a node of the chain:', () => {
  it('shows the chain, and the age of its newest finalized block', async () => {
    const { url } = await node();
    expect(await examine([url])).toEqual([
      `ok ${new URL(url).host} works: Test Chain, block 9 is final, 12 s old`,
    ]);
  });

  it('warns about a chain that has stopped', async () => {
    const { url } = await node({ ageMs: 400_000 });
    expect(await examine([url])).toEqual([
      expect.stringMatching(/^warning .* 400 s old; the node is behind, or the chain has stopped/),
    ]);
  });

  it.each<[string, unknown[], RegExp[]]>([
    ['all', HASHES, [/^ok 2 of the 2 newest blocks of final submissions are on the chain/]],
    ['one', [HASHES[0], `0x${'c'.repeat(64)}`], [/^problem 1 of the 2 .*; notify the operator/]],
    ['none', ['0x01', '0x02'], [/^problem 0 of the 2 .*; the node belongs to another chain/]],
    ['no comparable one', [null, null], []],
  ])('compares blocks of the ledger: %s', async (_, hashes, expected) => {
    const { url } = await node({ hashes });
    const [, ...findings] = await examine([url], { database: ledgerWithFinals() });
    expect(findings).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  });

  it('checks each address, and never shows a secret', async () => {
    const dead = (await deadAddress()).replace('http', 'ws');
    const { url } = await node();
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
    ['responds', 'never' as const, /does not respond within 0\.3 s/],
    ['announces a block', usualNode, /announces no finalized block within 0\.3 s/],
  ])('has a time limit for a node that never %s', async (_, respond, expected) => {
    const { url } = await openNode({ respond });
    expect(await examine([url], { limitMs: 300 })).toEqual([expect.stringMatching(expected)]);
  });
});
