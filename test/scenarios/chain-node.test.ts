import { expect, it, onTestFinished } from 'vitest';
import type { Submission } from '../../src/client/index.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { call, post } from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { reading, scrape } from '../support/app/metrics.ts';
import { openApp } from '../support/app/running-app.ts';
import { GENESIS, openNode } from '../support/servers/node-server.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';

/** An app with a sandbox. `urls`: default: the node of the sandbox. */
async function open({
  urls,
  database = `${tempFolder()}/ledger.db`,
}: {
  urls?: string[];
  database?: string;
} = {}) {
  const sandbox = await startSandbox({ options: { speed: 200 } });
  const lines: string[] = [];
  const addresses = urls ?? [sandbox.url.replace('http', 'ws')];
  const app = await openApp({
    database,
    upstreamUrl: sandbox.url,
    adminToken: ADMIN_TOKEN,
    upstream: { chain: { urls: addresses, verify: 'report', verify_data: false } },
    onLog: (line) => lines.push(line),
  });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await app.close();
    isOpen = false;
  };
  onTestFinished(async () => {
    await close();
    await sandbox.close();
  });
  const get = async (path: string, headers = AS_ADMIN as Record<string, string | string[]>) =>
    JSON.parse((await call(app.url, path, { headers })).text);
  return {
    url: app.url,
    close,
    get,
    /** Log lines about the chain of `default`. */
    log: () =>
      lines
        .map((line) => JSON.parse(line))
        .filter(({ event, upstream }) => event.startsWith('chain.') && upstream === 'default'),
    /** Returns when a block became final, epoch milliseconds. */
    finalAt: (block: number) =>
      sandbox.model.heads(block - 1, Date.now()).find(({ number }) => number === block)?.finalMs,
    /** Returns a new submission once it is final. */
    async untilFinal(): Promise<Submission & { block: number }> {
      const id = sandbox.model.submit('some data', Date.now());
      await post(app.url, { submission_id: id });
      const found: Submission = await get(`/v1/submissions/${id}/wait?timeout_s=240`, {});
      expect(found.status).toBe('finalized');
      return { ...found, block: Number(found.data?.block_number) };
    },
  };
}

it('a node of the chain is shown in readyz, pacing, metrics and the log', async () => {
  const node = await openNode({ head: 7 });
  const dead = (await deadAddress()).replace('http', 'ws');
  const { url, get, log } = await open({ urls: [node.url, dead] });
  const chain = {
    state: 'connected',
    name: 'Test Chain',
    genesis_hash: GENESIS,
    block_number: 7,
    block_at: expect.any(String),
    nodes: [
      {
        ...{ host: node.host, state: 'used', problem: null },
        ...{ block_number: 7, block_at: expect.any(String) },
      },
      {
        ...{ host: new URL(dead).host, state: 'disconnected', block_number: null, block_at: null },
        problem: 'the connection was refused',
      },
    ],
  };
  await eventually(async () =>
    expect((await get('/readyz')).upstreams.default.chain).toEqual(chain),
  );
  const anonymous = await get('/readyz', { 'x-api-key': [] });
  expect(anonymous.upstreams.default).toEqual({ state: 'up', chain: { state: 'connected' } });
  const pacing = await get('/v1/pacing', {});
  const [first] = pacing.upstreams;
  expect(first).toMatchObject({ upstream: 'default', chain });
  const { text } = await scrape(url);
  expect(text).toContain('dawatch_chain_connected{upstream="default"} 1\n');
  const state = `dawatch_chain_node_state{upstream="default",node="${node.host}",state=`;
  expect(text).toContain(`${state}"used"} 1\n`);
  expect(text).toContain(`${state}"behind"} 0\n`);
  expect(text).toMatch(/dawatch_chain_finalized_block_age_seconds\{upstream="default"\} [\d.]+\n/);
  expect(log()).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ event: 'chain.connected', level: 'info', chain: 'Test Chain' }),
      expect.objectContaining({ event: 'chain.unavailable', level: 'warn', node: dead.slice(5) }),
    ]),
  );
});

it('the time of finality is that of the announcement by a node, in responses, metrics and the overview', async () => {
  const { url, get, finalAt, untilFinal } = await open();
  const head = async () => (await get('/readyz')).upstreams.default.chain?.block_number;
  await eventually(async () => expect(await head()).toBeGreaterThan(0));
  const { finality_at, finality_source, finalized_at, block } = await untilFinal();
  expect(finality_source).toBe('chain');
  const [finalityMs, foundMs] = [finality_at, finalized_at].map((at) => Date.parse(at ?? ''));
  expect(finalityMs).toBeGreaterThanOrEqual(Math.floor(finalAt(block) ?? Number.NaN));
  expect(finalityMs).toBeLessThanOrEqual(Number(foundMs));
  const { text } = await scrape(url);
  const labels = { upstream: 'default', source: 'chain' };
  expect(reading(text, 'dawatch_detection_lag_seconds_sum', labels)).toBeCloseTo(
    (Number(foundMs) - Number(finalityMs)) / 1_000,
    6,
  );
  const { total } = await get('/v1/overview', {});
  expect(total.detection_lag_s).toMatchObject({ count: 1, from_chain: 1 });
});

it('a node of another chain is not used after a node has confirmed a block', async () => {
  const database = `${tempFolder()}/ledger.db`;
  const first = await open({ database });
  const head = async () => (await first.get('/readyz')).upstreams.default.chain?.block_number;
  await eventually(async () => expect(await head()).toBeGreaterThan(0));
  expect(await first.untilFinal()).toMatchObject({ chain: 'confirmed' });
  await first.close();
  const other = await openNode({ head: 99 });
  const { get } = await open({ urls: [other.url], database });
  const problem = expect.stringContaining(`its block 0 is ${GENESIS}, not 0x`);
  const chain = {
    ...{ state: 'unavailable', block_number: null },
    nodes: [{ state: 'another_chain', problem }],
  };
  await eventually(async () =>
    expect((await get('/readyz')).upstreams.default.chain).toMatchObject(chain),
  );
});

it('without a node that works, the server is ready, and polls as without a chain', async () => {
  const dead = (await deadAddress()).replace('http://', 'ws://user:a-password-of-a-node@');
  const { get, log, untilFinal } = await open({ urls: [dead] });
  const found = await Promise.all(Array.from({ length: 12 }, untilFinal));
  expect(new Set(found.map(({ chain }) => chain))).toEqual(new Set(['unavailable']));
  // The first ones of a block have no estimate.
  const sources = new Set(found.map(({ finality_source }) => finality_source));
  expect(sources).toContain('estimate');
  expect(sources).not.toContain('chain');
  const { status, upstreams } = await get('/readyz');
  expect(status).toBe('ok');
  expect(upstreams.default.chain).toMatchObject({
    state: 'unavailable',
    nodes: [{ host: new URL(dead).host, problem: 'the connection was refused' }],
  });
  expect(log()).toMatchObject([{ event: 'chain.unavailable', level: 'warn' }]);
  expect(JSON.stringify([log(), upstreams])).not.toContain('a-password');
});
