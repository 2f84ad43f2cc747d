import { describe, expect, test } from 'vitest';
import { Blocks } from '../../../src/polling/chain/blocks.ts';
import type { Header } from '../../../src/sandbox/chain/header.ts';
import type { SandboxOptionsInput } from '../../../src/sandbox/options.ts';
import { stubChain } from '../../support/chain/stub-chain.ts';
import { connectToNode, openTimedSandbox } from './node-client.ts';

const SUBSCRIBE = 'chain_subscribeFinalizedHeads';
async function openNode(options: SandboxOptionsInput = {}) {
  const sandbox = await openTimedSandbox(options);
  return { ...sandbox, ...(await connectToNode(sandbox.url)), sandbox };
}

describe('the node', () => {
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
      digest: { logs: [expect.stringMatching(/^0x06/), expect.stringMatching(/^0x05/)] },
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

describe('headers', () => {
  test('chain, have the hashes that rows and node name, and the root of the data in the body', async () => {
    const { clock, call, sandbox } = await openNode({ world: 'usual', regressRate: 0.3 });
    const first = Number((await call<Header>('chain_getHeader')).number) + 1;
    const submitted = [0, 1, 3, 5, 8, 2].map((count, block) =>
      Array.from({ length: count }, (_, index) => `data ${block} ${index}`),
    );
    submitted[3]?.push('', 'large '.repeat(50_000));
    const ids: string[] = [];
    const hashes = new Map<number, string>();
    for (const texts of [...submitted, ...Array.from({ length: 20 }, () => [])]) {
      for (const text of texts) ids.push(sandbox.model.submit(text, clock.now()));
      await clock.advance(20_000);
      const hash = await call<string>('chain_getBlockHash');
      hashes.set(Number((await call<Header>('chain_getHeader', hash)).number), hash);
    }

    let parentHash = await call<string>('chain_getBlockHash', first - 1);
    const best = Math.max(...hashes.keys());
    let proven = 0;
    for (let number = first; number <= best; number++) {
      const hash = await call<string>('chain_getBlockHash', number);
      expect(hash).toBe(hashes.get(number) ?? hash);
      const { block } = await call<{ block: { header: Header; extrinsics: string[] } }>(
        'chain_getBlock',
        hash,
      );
      expect(await call('chain_getHeader', hash)).toEqual(block.header);
      expect(block.header).toMatchObject({ number: `0x${number.toString(16)}`, parentHash });
      parentHash = hash;

      const extrinsics = Buffer.from(JSON.stringify(block.extrinsics).slice(1, -1));
      const { chain } = stubChain(async () => ({ block: { ...block, extrinsics } }));
      const { proof } = await new Blocks(chain, clock).of(number, hash);
      if (typeof proof === 'string') throw new Error(proof);
      proven += proof.data.size;
      const { commitment } = block.header.extension.V3;
      expect(commitment.commitment).toHaveLength(96 * commitment.rows);
    }
    // Some were sent twice.
    expect(proven).toBeGreaterThan(submitted.flat().length);
    for (const id of ids) {
      const row = sandbox.model.read(id, clock.now())?.block;
      expect(`0x${row?.hash}`).toBe(await call('chain_getBlockHash', row?.number));
    }
  });

  test.each(['lying', 'other_chain'] as const)(
    'of a node that is %s have its own hashes',
    async (nodeFault) => {
      const { clock, call, sandbox } = await openNode({ nodeFault });
      await call('chain_getFinalizedHead');
      await clock.advance(100_000);
      const hash = await call<string>('chain_getBlockHash');
      const header = await call<Header>('chain_getHeader', hash);
      const number = Number(header.number);
      expect(header.parentHash).toBe(await call('chain_getBlockHash', number - 1));
      expect(hash).not.toBe(`0x${sandbox.model.hashOf(number)}`);
      expect(await call('chain_getHeader', `0x${sandbox.model.hashOf(number)}`)).toBeNull();
    },
  );
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
  async function follow(nodeFault: SandboxOptionsInput['nodeFault']) {
    const node = await openNode({ nodeFault, nodeFaultS: 60 });
    // The first question starts the chain.
    await node.call('chain_getBlockHash', 0);
    await node.call(SUBSCRIBE);
    await node.clock.advance(100_000);
    const first = node.sandbox.model.heads(-1, node.clock.now())[0]?.number ?? Number.NaN;
    return (await node.numbers()).map((number) => number - first);
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
    expect(await follow(kind)).toEqual(expected);
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
});
