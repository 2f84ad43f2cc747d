import { blake2b } from '@noble/hashes/blake2.js';
import { describe, expect, test } from 'vitest';
import type { SandboxOptionsInput } from '../../../src/sandbox/options.ts';
import { type Block, connectToNode, type Header, openTimedSandbox } from './node-client.ts';

const SUBSCRIBE = 'chain_subscribeFinalizedHeads';
const KEY = { 'x-api-key': 'sandbox-key' };
const hashOf = (bytes: Uint8Array) =>
  `0x${Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex')}`;
const bytesOf = (hex: string) => Buffer.from(hex.slice(2), 'hex');

type Data = {
  block_number: number;
  block_hash: string;
  tx_hash: string;
  tx_index: number;
  data_hash: string;
};

async function openNode(options: SandboxOptionsInput = {}) {
  const sandbox = await openTimedSandbox(options);
  return { ...sandbox, ...(await connectToNode(sandbox.url)), sandbox };
}

async function submitRaw(url: string, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const init = { method: 'POST', headers: KEY, body };
  const response = await fetch(`${url}/v1/submit_raw_data`, init);
  return ((await response.json()) as { submission_id: string }).submission_id;
}

async function dataOf(url: string, id: string): Promise<Data> {
  const response = await fetch(`${url}/v1/get_submission_info?submission_id=${id}`, {
    headers: KEY,
  });
  return ((await response.json()) as { data: Data }).data;
}

describe('the node', () => {
  test('agrees with the rows of the sandbox about block, transaction and data', async () => {
    const { sandbox, clock, call } = await openNode({ world: 'usual', stallRate: 0 });
    // Lengths of one, two and four bytes, and bytes that are no text.
    const contents = [1, 30, 64, 5_000, 100_000].map((length) =>
      Uint8Array.from({ length }, (_, index) => (index * 7 + length) % 256),
    );
    const submitted = [];
    for (const bytes of contents) {
      submitted.push({ bytes, id: await submitRaw(sandbox.url, bytes) });
      submitted.push({ bytes, id: await submitRaw(sandbox.url, bytes) });
      await clock.advance(11_000);
    }
    await clock.advance(120_000);

    const places = new Set<string>();
    for (const { bytes, id } of submitted) {
      const data = await dataOf(sandbox.url, id);
      expect(await call('chain_getBlockHash', data.block_number)).toBe(data.block_hash);
      expect(await call('chain_getBlockHash', `0x${data.block_number.toString(16)}`)).toBe(
        data.block_hash,
      );
      const { block } = await call<Block>('chain_getBlock', data.block_hash);
      expect(block.header).toEqual(await call('chain_getHeader', data.block_hash));
      expect(Number(block.header.number)).toBe(data.block_number);
      const extrinsic = bytesOf(block.extrinsics[data.tx_index] ?? '');
      expect(hashOf(extrinsic)).toBe(data.tx_hash);
      expect(hashOf(bytes)).toBe(data.data_hash);
      expect(extrinsic.subarray(-bytes.length).equals(bytes)).toBe(true);
      places.add(`${data.block_number}/${data.tx_index}`);
    }
    expect(places.size).toBe(submitted.length);
  });

  test('has a chain of headers from the first block on, with the fields of the network', async () => {
    const { clock, call } = await openNode();
    // The first question starts the chain.
    await call('chain_getFinalizedHead');
    await clock.advance(200_000);
    const header = await call<Header>('chain_getHeader');
    expect(header).toEqual({
      parentHash: await call('chain_getBlockHash', Number(header.number) - 1),
      number: `0x${Number(header.number).toString(16)}`,
      stateRoot: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      extrinsicsRoot: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      digest: { logs: [] },
      extension: { V3: { appLookup: expect.any(Object), commitment: expect.any(Object) } },
    });
    const genesis = await call('chain_getBlockHash', 0);
    expect(await call('chain_getHeader', genesis)).toMatchObject({ number: '0x0' });
    // In this world, two blocks follow a block that is final.
    const finalized = await call<Header>('chain_getHeader', await call('chain_getFinalizedHead'));
    expect(Number(finalized.number)).toBe(Number(header.number) - 2);
    expect(await call('chain_getBlockHash', Number(header.number) + 1)).toBeNull();
    expect(await call('chain_getBlock', `0x${'ab'.repeat(32)}`)).toBeNull();
    // Bodies of blocks before the start of the sandbox are pruned.
    expect(await call('chain_getBlock', genesis)).toBeNull();
  });

  test.each([
    ['{"jsonrpc":"2.0","id":1,', { error: { code: -32_700 }, id: null }],
    ['{"id":1}', { error: { code: -32_600 }, id: null }],
    ['[]', { error: { code: -32_600 }, id: null }],
    ['{"jsonrpc":"2.0","id":"a","method":"eth_chainId"}', { error: { code: -32_601 }, id: 'a' }],
    [
      '{"jsonrpc":"2.0","id":2,"method":"chain_getHeader","params":["0x1"]}',
      { error: { code: -32_602 }, id: 2 },
    ],
    [
      '{"jsonrpc":"2.0","id":2,"method":"chain_getBlockHash","params":[-1]}',
      { error: { code: -32_602 }, id: 2 },
    ],
    ['{"jsonrpc":"2.0","id":3,"method":"system_chain"}', { result: 'dawatch sandbox', id: 3 }],
    [
      `[{"jsonrpc":"2.0","id":4,"method":"system_chain"},{"jsonrpc":"2.0","method":"system_chain"},
        {"jsonrpc":"2.0","id":5,"method":"no"}]`,
      [
        { result: 'dawatch sandbox', id: 4 },
        { error: { code: -32_601 }, id: 5 },
      ],
    ],
  ])('responds to %s, over WebSocket and HTTP', async (text, expected) => {
    const { sandbox, exchange } = await openNode();
    expect(await exchange(text)).toMatchObject(expected);
    const response = await fetch(sandbox.url, { method: 'POST', body: text });
    expect(await response.json()).toMatchObject(expected);
  });
});

describe('finalized heads', () => {
  test('begin with the present one, and are announced when they are final', async () => {
    const { clock, call, numbers, heads } = await openNode();
    // The first question starts the chain.
    await call('chain_getFinalizedHead');
    await clock.advance(100_000);
    const subscription = await call<string>(SUBSCRIBE);
    const [first = 0] = await numbers();
    expect(await call('chain_getBlockHash', first)).toBe(await call('chain_getFinalizedHead'));
    await clock.advance(19_999);
    expect(await numbers()).toEqual([first]);
    await clock.advance(1);
    expect(await numbers()).toEqual([first, first + 1]);
    await clock.advance(60_000);
    expect(await numbers()).toEqual([0, 1, 2, 3, 4].map((more) => first + more));
    expect(new Set(heads.map((head) => head.subscription))).toEqual(new Set([subscription]));
    expect(heads[1]?.header.parentHash).toBe(await call('chain_getBlockHash', first));
  });

  test('stop with the subscription and with the connection, and with them the timer', async () => {
    const { sandbox, clock, call, numbers, close } = await openNode();
    const subscription = await call(SUBSCRIBE);
    expect(clock.pending).toBe(1);
    expect(await call('chain_unsubscribeFinalizedHeads', subscription)).toBe(true);
    expect(await call('chain_unsubscribeFinalizedHeads', subscription)).toBe(false);
    expect(clock.pending).toBe(0);
    await clock.advance(100_000);
    expect(await numbers()).toHaveLength(1);
    const other = await connectToNode(sandbox.url);
    await other.call(SUBSCRIBE);
    await call(SUBSCRIBE);
    close();
    await clock.advance(100_000);
    expect(await other.numbers()).toHaveLength(6);
    other.close();
    await expect.poll(() => clock.pending).toBe(0);
  });
});

describe('a node', () => {
  /** Subscribes, and returns how far the heads of the next 100 s are above the first block. */
  async function follow(nodeFault: SandboxOptionsInput['nodeFault'], nodeFaultS = 60) {
    const node = await openNode({ nodeFault, nodeFaultS });
    const genesis = await node.call('chain_getBlockHash', 0);
    await node.call(SUBSCRIBE);
    await node.clock.advance(100_000);
    const first = node.sandbox.model.heads(-1, node.clock.now())[0]?.number ?? Number.NaN;
    return { ...node, genesis, ahead: (await node.numbers()).map((number) => number - first) };
  }

  test.each([
    ['none', [-1, 0, 1, 2, 3]],
    ['silent', []],
    ['lagging', [-1, 0]],
    // Announces a block when it is produced.
    ['early', [0, 1, 2, 3, 4, 5]],
    ['duplicate', [-1, -1, 0, 0, 1, 1, 2, 2, 3, 3]],
    ['disordered', [0, -1, 2, 1]],
  ] as const)('that is %s sends the heads %j', async (kind, expected) => {
    expect((await follow(kind)).ahead).toEqual(expected);
  });

  test.each([
    ['lying', true, 'dawatch sandbox'],
    ['other_chain', false, 'another chain'],
  ] as const)('that is %s has other hashes', async (kind, isSameGenesis, name) => {
    const { sandbox, clock, call, genesis } = await follow(kind);
    const [head] = sandbox.model.heads(-1, clock.now());
    const said = await call('chain_getBlockHash', head?.number);
    expect(await call('system_chain')).toBe(name);
    // It is consistent with itself.
    expect(await call('chain_getHeader', said)).toMatchObject({
      number: `0x${head?.number.toString(16)}`,
    });
    sandbox.setNodeFault({ kind: 'none', seconds: 1 });
    expect((await call('chain_getBlockHash', head?.number)) === said).toBe(false);
    expect((await call('chain_getBlockHash', 0)) === genesis).toBe(isSameGenesis);
  });

  test('that is pruned has no bodies of blocks older than its time', async () => {
    const { call, sandbox, clock } = await follow('pruned', 30);
    const [old, , recent] = sandbox.model.heads(-1, clock.now() + 40_000).slice(-4);
    const bodyOf = async (number?: number) =>
      call('chain_getBlock', await call('chain_getBlockHash', number));
    expect(await bodyOf(old?.number)).toBeNull();
    expect(await bodyOf(recent?.number)).not.toBeNull();
  });

  test('that is closing closes a connection after its time, also one that is open already', async () => {
    const { sandbox, clock, closed, call } = await openNode();
    await call('system_health');
    sandbox.setNodeFault({ kind: 'closing', seconds: 5 });
    const later = await connectToNode(sandbox.url);
    await clock.advance(5_000);
    expect(await closed).toBe(1001);
    expect(await later.closed).toBe(1001);
  });

  test('can change its fault by the operator route', async () => {
    const { sandbox, clock, call, numbers } = await openNode();
    const order = (body: object) =>
      fetch(`${sandbox.url}/_sandbox/node`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    await call(SUBSCRIBE);
    const [first = 0] = await numbers();
    expect((await order({ fault: 'silent' })).status).toBe(204);
    await clock.advance(120_000);
    expect(await numbers()).toEqual([first]);
    expect((await order({ fault: 'none' })).status).toBe(204);
    expect(await numbers()).toEqual([0, 1, 2, 3, 4, 5].map((more) => first + more));
    expect((await order({ fault: 'unheard_of' })).status).toBe(400);
    expect((await order({ fault: 'closing', seconds: 0 })).status).toBe(400);
  });
});
