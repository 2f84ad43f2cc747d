import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runDoctor } from '../../src/wiring/doctor.ts';
import { loadConfig } from '../../src/wiring/settings.ts';
import { announce, openNode, usualNode } from '../support/servers/node-server.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const node = () => openNode({ onSubscribe: (socket) => announce(socket, 9) });

/** Returns the findings about the chain. */
async function examine(urls: string[], { verify = 'report', limitMs = 5_000 } = {}) {
  const upstream = await serve((_, response) => response.end());
  const env = {
    DAWATCH_UPSTREAM_URL: upstream.url,
    DAWATCH_CHAIN_URL: urls.join(','),
    DAWATCH_DATABASE: join(tempFolder(), 'dawatch.db'),
  };
  const loaded = loadConfig({ env, file: null });
  loaded.config.upstreams.default.chain.verify = verify as 'report' | 'require';
  const findings = await runDoctor({ loaded, now: 0, full: false, limitMs, features: [] });
  return findings
    .filter(({ name }) => name === 'chain.default')
    .map(({ status, message, action }) => `${status} ${message}${action ? `; ${action}` : ''}`);
}

describe('the doctor and a node of the chain:', () => {
  it('shows the chain, and its newest finalized block', async () => {
    const { url } = await node();
    expect(await examine([url])).toEqual([
      `ok ${new URL(url).host} works: Test Chain, block 9 is final`,
    ]);
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
