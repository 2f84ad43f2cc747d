import { expect, it, onTestFinished, vi } from 'vitest';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { scrape } from '../support/app/metrics.ts';
import { configOf, openApp } from '../support/app/running-app.ts';
import { announce, GENESIS, openNode } from '../support/servers/node-server.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const ADMIN = { 'x-api-key': [], authorization: `Bearer ${ADMIN_TOKEN}` };
const UNTIL = { timeout: 15_000 };

/** An app with a sandbox. `urls`: default: the node of the sandbox. */
async function open(urls?: string[]) {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  const lines: string[] = [];
  const setting = (addresses: string[]) => ({
    database: `${tempFolder()}/ledger.db`,
    upstreamUrl: sandbox.url,
    adminToken: ADMIN_TOKEN,
    upstream: { chain: { urls: addresses, verify: 'report' as const, verify_data: false } },
  });
  const initial = setting(urls ?? [sandbox.url.replace('http', 'ws')]);
  let config = configOf(initial);
  const app = await openApp({
    ...initial,
    settings: { load: () => ({ config, settings: [], file: undefined }), onApplied: () => {} },
    onLog: (line) => lines.push(line),
  });
  onTestFinished(async () => {
    await app.close();
    await sandbox.close();
  });
  const get = async (path: string, headers = ADMIN as Record<string, string | string[]>) =>
    JSON.parse((await call(app.url, path, { headers })).text);
  return {
    url: app.url,
    get,
    /** Reloads the settings with other addresses. */
    async reload(addresses: string[]) {
      const next = setting(addresses);
      config = configOf({ ...next, database: initial.database });
      return app.reload({ name: 'test', credentialId: null, address: null });
    },
    /** Log lines about the chain of `default`. */
    log: () =>
      lines
        .map((line) => JSON.parse(line))
        .filter(({ event, upstream }) => event.startsWith('chain.') && upstream === 'default'),
    /** Returns the block of a new submission. */
    async untilFinal(): Promise<number> {
      const id = sandbox.model.submit('some data', Date.now());
      await post(app.url, { submission_id: id });
      const { status, data } = await get(`/v1/submissions/${id}/wait?timeout_s=15`, {});
      expect(status).toBe('finalized');
      return data.block_number;
    },
  };
}

it('a node of the chain is shown in readyz, pacing, metrics and the log', async () => {
  const node = await openNode({ onSubscribe: (socket) => announce(socket, 7) });
  const { url, get, log } = await open([node.url]);
  const chain = {
    state: 'connected',
    node: new URL(node.url).host,
    name: 'Test Chain',
    genesis_hash: GENESIS,
    block_number: 7,
    block_at: expect.any(String),
    problem: null,
  };
  await vi.waitFor(
    async () => expect((await get('/readyz')).upstreams.default.chain).toEqual(chain),
    UNTIL,
  );
  const anonymous = await get('/readyz', { 'x-api-key': [] });
  expect(anonymous.upstreams.default).toEqual({ state: 'up', chain: { state: 'connected' } });
  const pacing = await get('/v1/pacing', {});
  const [first] = pacing.upstreams;
  expect(first).toMatchObject({ upstream: 'default', chain });
  const { text } = await scrape(url);
  expect(text).toContain('dawatch_chain_connected{upstream="default"} 1\n');
  expect(text).toContain('dawatch_chain_finalized_block{upstream="default"} 7\n');
  expect(text).toMatch(/dawatch_chain_finalized_block_age_seconds\{upstream="default"\} [\d.]+\n/);
  expect(text).toContain('dawatch_chain_reconnects_total{upstream="default"} 0\n');
  expect(log()).toMatchObject([{ event: 'chain.connected', level: 'info', chain: 'Test Chain' }]);
});

it('a reload changes the node', async () => {
  const second = await openNode({ onSubscribe: (socket) => announce(socket, 8) });
  const { get, reload, untilFinal } = await open();
  const chain = async () => (await get('/readyz')).upstreams.default.chain;
  const block = await untilFinal();
  expect(await chain()).toMatchObject({ state: 'connected', name: 'dawatch sandbox' });
  expect((await chain()).block_number).toBeGreaterThanOrEqual(block);
  expect(await reload([second.url])).toEqual({
    kind: 'reloaded',
    changes: ['upstreams.default.chain.urls', 'upstreams.other.chain.urls'],
  });
  await vi.waitFor(
    async () => expect(await chain()).toMatchObject({ name: 'Test Chain', block_number: 8 }),
    UNTIL,
  );
  await reload([]);
  expect(await chain()).toBeUndefined();
});

it('without a node that works, the server is ready, and polls as without a chain', async () => {
  const dead = (await deadAddress()).replace('http://', 'ws://user:a-password-of-a-node@');
  const { get, log, untilFinal } = await open([dead]);
  await untilFinal();
  const { status, upstreams } = await get('/readyz');
  expect(status).toBe('ok');
  expect(upstreams.default.chain).toMatchObject({
    state: 'unavailable',
    problem: `${new URL(dead).host}: the connection was refused`,
  });
  expect(log()).toMatchObject([{ event: 'chain.unavailable', level: 'warn' }]);
  expect(JSON.stringify([log(), upstreams])).not.toContain('a-password');
});
