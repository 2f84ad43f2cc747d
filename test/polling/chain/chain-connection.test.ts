import { setImmediate as turn } from 'node:timers/promises';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openChain } from '../../../src/polling/chain/chain.ts';
import { MAX_PENDING_CALLS } from '../../../src/polling/chain/node-connection.ts';
import type { ChainHead } from '../../../src/polling/chain/port.ts';
import { startConnectProxy } from '../../support/servers/connect-proxy.ts';
import {
  announce,
  GENESIS,
  header,
  openNode,
  usualNode,
} from '../../support/servers/node-server.ts';
import { selfSigned } from '../../support/servers/receiver.ts';
import { deadAddress, serve, serveRaw } from '../../support/servers/upstream-server.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

const START_MS = 1_760_000_000_000;
const OTHER_GENESIS = `0x${'8'.repeat(64)}`;
const settingsOf = (urls: string[]) => ({
  urls,
  verify: 'report' as const,
  verify_data: false,
});

/** A chain in virtual time, without jitter, until the test ends. */
function open(...urls: string[]) {
  const clock = createVirtualClock(START_MS);
  const problems: (string | null)[] = [];
  const heads: ChainHead[] = [];
  const chain = openChain({
    settings: settingsOf(urls),
    clock,
    random: () => 1,
    version: '1.2.3',
    onChange: ({ problem }) => problems.push(problem),
  });
  onTestFinished(() => chain.close());
  chain.onHead((head) => heads.push(head));
  const nodes = () => chain.status()?.nodes ?? [];
  const states = () => nodes().map(({ state }) => state);
  return {
    chain,
    clock,
    heads,
    /** The problems of connections that were reported so far; null: a node works. */
    problems,
    nodes,
    states,
    /** Waits until all nodes have announced a block. */
    connected: () =>
      expect.poll(states).not.toEqual(expect.arrayContaining([expect.stringMatching(/connect/)])),
    disconnected: () =>
      expect.poll(() => nodes().some(({ state }) => state === 'disconnected')).toBe(true),
    /** Waits until a node has announced a block. */
    announced: (number: number, index = 0) =>
      expect.poll(() => nodes()[index]?.head?.number).toBe(number),
    /** Waits until listeners have a block. */
    async head(number: number): Promise<void> {
      await expect
        .poll(async () => {
          await clock.advance(100);
          return heads.at(-1)?.number;
        })
        .toBe(number);
    },
  };
}

describe('finalized blocks', () => {
  it('are announced with their number, which is hexadecimal or a number', async () => {
    const node = await openNode();
    const { chain, connected, head } = open(node.url);
    await connected();
    node.announce('0x38');
    await head(56);
    node.announce(57);
    await head(57);
    expect(chain.status()).toEqual({
      name: 'Test Chain',
      genesisHash: GENESIS,
      head: { number: 57, at: expect.any(Number) },
      nodes: [
        {
          ...{ host: node.host, state: 'used', unusedSince: null },
          ...{ head: { number: 57, at: expect.any(Number) }, problem: null },
        },
      ],
    });
  });

  it('have the time of their announcement, if it was not missed', async () => {
    const node = await openNode({ head: 10 });
    const { chain, clock, connected, head, disconnected } = open(node.url);
    await connected();
    await head(10);
    expect(chain.finalizedAt(10)).toBeNull();
    await clock.advance(20_000);
    node.announce(12);
    await head(12);
    const at = chain.status()?.head?.at as number;
    expect(at).toBeGreaterThanOrEqual(START_MS + 20_000);
    expect([9, 10, 11, 12, 13].map(chain.finalizedAt)).toEqual([null, null, at, at, null]);
    // Blocks that became final without a connection have no time.
    node.disconnect();
    await disconnected();
    await clock.advance(1_000);
    await connected();
    node.announce(15);
    await head(15);
    node.announce(16);
    await head(16);
    expect(chain.finalizedAt(12)).toBe(at);
    expect(chain.finalizedAt(16)).toBe(chain.status()?.head?.at);
  });

  it('count when the first of several nodes announces them', async () => {
    const [late, early] = [await openNode(), await openNode()];
    const { chain, clock, connected, heads, head, announced } = open(late.url, early.url);
    await connected();
    await clock.advance(20_000);
    early.announce(2);
    await head(2);
    const at = chain.status()?.head?.at;
    await clock.advance(5_000);
    late.announce(2);
    await announced(2);
    await clock.advance(1_000);
    expect(chain.status()?.head).toEqual({ number: 2, at });
    expect(chain.finalizedAt(2)).toBe(at);
    expect(heads.filter(({ number }) => number === 2)).toHaveLength(1);
  });

  it('are announced ten times per second at most, and other work runs between them', async () => {
    const node = await openNode();
    const { chain, clock, connected, heads } = open(node.url);
    await connected();
    for (let number = 1; number <= 400; number += 1) node.announce(number);
    let turns = 0;
    for (; chain.status()?.head?.number !== 400; turns += 1) await turn();
    expect(turns).toBeGreaterThanOrEqual(399);
    await clock.advance(1_000);
    expect(heads.at(-1)?.number).toBe(400);
    expect(heads.length).toBeLessThanOrEqual(11);
  });

  it('may come twice and out of order', async () => {
    const node = await openNode();
    const { chain, connected, head } = open(node.url);
    await connected();
    for (const number of [5, 7, 6, 7, 8]) node.announce(number);
    await head(8);
    expect(chain.status()?.head?.number).toBe(8);
  });
});

describe('a node', () => {
  it('that is dead does not keep the others from being used', async () => {
    const dead = (await deadAddress()).replace('http', 'ws');
    const node = await openNode();
    const { chain, announced, disconnected, problems, states } = open(dead, node.url);
    await disconnected();
    await announced(1, 1);
    expect(states()).toEqual(['disconnected', 'used']);
    expect(problems).toEqual(expect.arrayContaining(['the connection was refused', null]));
    expect(await chain.call('system_chain', [])).toMatchObject({ result: 'Test Chain' });
  });

  it('is connected when it has announced a block, and silent after a minute without one', async () => {
    const node = await openNode({ head: null });
    const { chain, clock, nodes, problems } = open(node.url);
    await expect.poll(() => node.methods).toHaveLength(3);
    await expect.poll(() => clock.pending).toBe(1);
    expect(nodes()).toMatchObject([{ state: 'connecting', problem: null }]);
    await expect(chain.call('system_chain', [])).rejects.toMatchObject({ reason: 'not_connected' });
    await clock.advance(59_000);
    expect(problems).toEqual([]);
    await clock.advance(1_000);
    expect(problems).toEqual([expect.stringMatching(/announces no finalized blocks/)]);
  });

  it('is judged by what it has sent when the process was stopped', async () => {
    const node = await openNode();
    const { clock, connected, announced, problems, states } = open(node.url);
    await connected();
    node.announce(2);
    clock.skip(600_000);
    // The timer fires before the message is read.
    await clock.advance(0);
    await announced(2);
    await clock.advance(50_000);
    expect(states()).toEqual(['used']);
    expect(problems).toEqual([null]);
  });

  it('that has another block than most nodes, or is behind, is not asked, with the reason', async () => {
    const nodes = [await openNode(), await openNode(), await openNode()] as const;
    const [first, second, third] = nodes;
    const { chain, clock, connected, announced, states } = open(...nodes.map(({ url }) => url));
    const problemOf = (index: number) => chain.status()?.nodes[index]?.problem;
    await connected();
    for (const [index, fork] of ['b', 'a', 'a'].entries()) {
      nodes[index]?.announce(2, fork);
      await announced(2, index);
    }
    expect(states()).toEqual(['another_block', 'used', 'used']);
    expect(problemOf(0)).toBe(`its blocks are not those of ${second.host}`);
    expect((await chain.call('system_chain', [])).node).toBe(second.host);
    for (const [index, node] of [first, third].entries()) {
      node.announce(3);
      await announced(3, 2 * index);
    }
    await clock.advance(15_000);
    expect(states()).toEqual(['used', 'behind', 'used']);
    expect(problemOf(1)).toBe(`it announces blocks more than 15 s after ${first.host}`);
    for (const number of [3, 4]) second.announce(number);
    await announced(4, 1);
    expect(states()).toEqual(['used', 'used', 'used']);
  });

  it('that announces its newest blocks as final is not used', async () => {
    const early = await openNode({
      respond: (method) =>
        method === 'chain_getHeader' ? { result: header(3) } : usualNode(method),
    });
    const node = await openNode();
    const { chain, clock, connected, announced, states, nodes } = open(early.url, node.url);
    await connected();
    early.announce(2);
    await announced(2);
    await clock.advance(20_000);
    early.announce(3);
    await expect.poll(states).toEqual(['early', 'used']);
    expect(nodes()[0]?.problem).toMatch(/^it announces blocks as final long before 127/);
    expect(chain.status()?.head?.number).toBe(1);
    node.announce(2);
    await announced(2, 1);
    expect(chain.status()?.head?.number).toBe(2);
  });

  it('of another chain is not used', async () => {
    const respond = (method: string) =>
      method === 'chain_getBlockHash' ? { result: OTHER_GENESIS } : usualNode(method);
    const [node, other] = [await openNode(), await openNode({ respond, head: 99 })];
    const { chain, connected, states } = open(node.url, other.url);
    await connected();
    expect(states()).toEqual(['used', 'another_chain']);
    expect(chain.status()).toMatchObject({ head: { number: 1 }, genesisHash: GENESIS });
  });

  it('is connected to again after longer waits, up to a minute, and each problem is reported once', async () => {
    let connections = 0;
    const { url } = await serveRaw((socket) => {
      connections += 1;
      socket.destroy();
    });
    const { clock, problems } = open(url.replace('http', 'ws'));
    const until = (count: number) => expect.poll(() => connections).toBe(count);
    await until(1);
    for (const [index, waitMs] of [1, 2, 4, 8, 16, 32, 60, 60].map((s) => s * 1_000).entries()) {
      await expect.poll(() => clock.pending).toBe(1);
      await clock.advance(waitMs - 1);
      expect(connections).toBe(index + 1);
      await clock.advance(1);
      await until(index + 2);
    }
    expect(problems).toHaveLength(1);
  });

  it('works again when it has announced a new block', async () => {
    const node = await openNode();
    const { clock, connected, disconnected, head, problems, nodes } = open(node.url);
    await connected();
    node.disconnect();
    await disconnected();
    expect(nodes()[0]?.problem).toMatch(/closed the connection/);
    await clock.advance(1_000);
    await connected();
    expect(nodes()[0]?.problem).toBeNull();
    expect(problems).toEqual([null, expect.any(String)]);
    await clock.advance(5_000);
    node.announce(2);
    await head(2);
    expect(problems).toEqual([null, expect.any(String), null]);
  });
});

describe('a node that cannot be used is a problem in one sentence:', () => {
  it.each<[string, () => Promise<string>, string | RegExp]>([
    ['a name that does not resolve', async () => 'ws://nothing.invalid', /(name|DNS)/],
    [
      'a web page',
      async () => (await serve((_, response) => response.end('<html>'))).url,
      'it responds with HTTP 200 instead of a WebSocket',
    ],
    [
      'a refused key',
      async () => (await serve((_, response) => response.writeHead(401).end())).url,
      'it responds with HTTP 401 instead of a WebSocket',
    ],
    [
      'another protocol',
      async () => (await serveRaw((socket) => socket.end('220 mail\r\n'))).url,
      'the response is not HTTP',
    ],
    [
      'a chain of another kind',
      async () =>
        (await openNode({ respond: () => ({ error: { code: -32_601, message: 'unknown' } }) })).url,
      /^it does not offer chain_getBlockHash: .* such as Ethereum/,
    ],
    [
      'no subscription to finalized blocks',
      async () =>
        (
          await openNode({
            respond: (method) => usualNode(method.replace('subscribe', 'unknown')),
          })
        ).url,
      /^it does not offer chain_subscribeFinalizedHeads/,
    ],
    [
      'no block 0',
      async () => (await openNode({ respond: () => ({ result: null }) })).url,
      'it does not have block 0',
    ],
    [
      'a connection closed after the subscription',
      async () =>
        (await openNode({ head: null, onSubscribe: (socket) => socket.close(1013, 'busy') })).url,
      'it closed the connection (1013 busy)',
    ],
    [
      'numbers that are no numbers',
      async () => (await openNode({ onSubscribe: (socket) => announce(socket, '0xzz') })).url,
      'it sends a finalized block without a valid number',
    ],
    [
      'negative numbers',
      async () => (await openNode({ onSubscribe: (socket) => announce(socket, -1) })).url,
      'it sends a finalized block without a valid number',
    ],
    [
      'a text that is not JSON',
      async () => (await openNode({ onConnect: (socket) => socket.send('hello') })).url,
      'it sends messages that are not JSON-RPC',
    ],
    [
      'a notice of a limit',
      async () =>
        (
          await openNode({
            onConnect: (socket) =>
              socket.send('{"jsonrpc":"2.0","error":{"code":-1,"message":"too many"}}'),
          })
        ).url,
      'it reports: too many (-1)',
    ],
    [
      'a header of 600 kB',
      async () =>
        (await openNode({ onSubscribe: (socket) => announce(socket, 'x'.repeat(600e3)) })).url,
      'it sends a message of more than 512 KiB',
    ],
    [
      'a flood of heads',
      async () =>
        (
          await openNode({
            onSubscribe(socket) {
              for (let number = 1; number <= 600; number += 1) announce(socket, number);
            },
          })
        ).url,
      'it sends too many messages within a second',
    ],
  ])('%s', async (_, start, expected) => {
    const { chain, problems, nodes, disconnected } = open((await start()).replace(/^http/, 'ws'));
    await disconnected();
    expect(problems.at(-1)).toEqual(
      typeof expected === 'string' ? expected : expect.stringMatching(expected),
    );
    const [node] = nodes();
    await expect(chain.call('system_chain', [])).rejects.toMatchObject({
      reason: 'not_connected',
      message: `${node?.host}: ${problems.at(-1)}`,
    });
  });

  const tls = selfSigned();
  it.skipIf(!tls)('an untrusted certificate', async () => {
    const node = await openNode({ tls: tls as { key: string; cert: string } });
    const { disconnected, problems } = open(node.url);
    await disconnected();
    expect(problems).toEqual([expect.stringMatching(/^TLS failed \(DEPTH_ZERO/)]);
  });

  it('no handshake within 10 s', async () => {
    const accepted = vi.fn();
    const { url } = await serveRaw(accepted);
    const { clock, problems } = open(url.replace('http', 'ws'));
    await expect.poll(() => accepted).toHaveBeenCalled();
    await clock.advance(10_000);
    expect(problems).toEqual([expect.stringMatching(/does not complete the WebSocket handshake/)]);
  });

  it('no response within 10 s', async () => {
    const node = await openNode({ respond: 'never' });
    const { clock, problems } = open(node.url);
    await expect.poll(() => node.methods).toHaveLength(1);
    await clock.advance(10_000);
    expect(problems).toEqual([expect.stringMatching(/no response to chain_getBlockHash/)]);
  });
});

describe('a call', () => {
  it('asks the nodes in their order, and the next one after an error', async () => {
    const respond = (method: string) =>
      method === 'system_chain' ? { error: { code: 1, message: 'busy' } } : usualNode(method);
    const [first, second] = [await openNode({ respond }), await openNode()];
    const { chain, connected } = open(first.url, second.url);
    await connected();
    const call = async (method: string, except?: string) =>
      (await chain.call(method, [0], except)).node;
    expect(await call('chain_getBlockHash')).toBe(first.host);
    expect(await call('chain_getBlockHash', first.host)).toBe(second.host);
    expect(await call('system_chain')).toBe(second.host);
    second.disconnect();
    await expect.poll(() => call('chain_getBlockHash', first.host)).toBe(first.host);
  });

  it('fetches a block of up to 16 MiB, and nothing else that is large, without ending the connection', async () => {
    const extrinsics = ['0x0102', `0x${'ab'.repeat(3e6)}`];
    const block = (size: number) => ({
      header: header(1),
      extrinsics: [...extrinsics, 'x'.repeat(size)],
    });
    const respond = (method: string, [size]: unknown[]) => {
      if (method !== 'chain_getBlock') return usualNode(method);
      return { result: size === 'objects' ? Array(4e6).fill({}) : { block: block(Number(size)) } };
    };
    const node = await openNode({ respond });
    const { chain, connected, problems } = open(node.url);
    await connected();
    type Fetched = { block: { extrinsics: Buffer } };
    const { result } = await chain.call<Fetched>('chain_getBlock', [9e6]);
    expect(JSON.parse(`[${result.block.extrinsics}]`)).toHaveLength(3);
    await expect(chain.call('chain_getBlock', [17e6])).rejects.toMatchObject({
      reason: 'too_large',
      message: 'it sends a message of more than 16384 KiB',
    });
    await expect(chain.call('chain_getBlock', ['objects'])).rejects.toMatchObject({
      message: 'it sends messages that are not JSON-RPC',
    });
    expect(problems).toEqual([null]);
  });

  it.each([
    [{ code: -32_601, message: 'Method not found' }, 'method_not_found'],
    [{ code: -32_000, message: 'pruned\u202e' }, 'refused'],
  ])('rejects with the error of the node: %j', async (error, reason) => {
    const respond = (method: string) =>
      method === 'chain_getBlock' ? { error } : usualNode(method);
    const node = await openNode({ respond });
    const { chain, connected } = open(node.url);
    await connected();
    const failed = chain.call('chain_getBlock', []);
    await expect(failed).rejects.toMatchObject({ name: 'ChainError', reason });
    await expect(failed).rejects.not.toThrow('\u202e');
  });

  it('rejects after 10 s, when too many wait, and when the connection ends', async () => {
    let isSilent = false;
    const respond = (method: string) => {
      if (isSilent) throw new Error('silent');
      return usualNode(method);
    };
    const node = await openNode({
      respond,
      onSubscribe(socket) {
        isSilent = true;
        socket.removeAllListeners('message');
      },
    });
    const { chain, clock, connected } = open(node.url);
    await connected();
    const late = chain.call('chain_getHeader', []).catch(({ reason }) => reason);
    await clock.advance(10_000);
    expect(await late).toBe('timeout');
    const calls = Array.from({ length: MAX_PENDING_CALLS + 1 }, () =>
      chain.call('chain_getHeader', []).catch(({ reason }) => reason),
    );
    expect(await calls.at(-1)).toBe('busy');
    node.disconnect();
    expect(new Set(await Promise.all(calls.slice(0, -1)))).toEqual(new Set(['closed']));
  });
});

describe('the credentials of an address', () => {
  it('are sent as Basic authorization, and never shown, even if the node quotes them', async () => {
    const message =
      'the key a-secret-key-in-a-query of a-password-of-a-node at a-secret-key-in-a-path is unknown';
    const node = await openNode({ respond: () => ({ error: { code: 1, message } }) });
    const address = node.url.replace('ws://', 'ws://ada:a-password-of-a-node@');
    const { nodes, disconnected } = open(
      `${address}/a-secret-key-in-a-path?apikey=a-secret-key-in-a-query`,
    );
    await disconnected();
    const login = Buffer.from('ada:a-password-of-a-node').toString('base64');
    expect(node.requests[0]).toMatchObject({
      authorization: `Basic ${login}`,
      'user-agent': 'dawatch/1.2.3',
    });
    expect(JSON.stringify(nodes())).toContain('is unknown');
    expect(JSON.stringify(nodes())).not.toMatch(/a-secret-key|a-password/);
  });
});

describe('the proxy of the environment', () => {
  beforeEach(() => {
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'])
      for (const variable of [name, name.toLowerCase()]) vi.stubEnv(variable, undefined);
    return () => vi.unstubAllEnvs();
  });

  // Node 22.21 and newer connect an agent through a proxy.
  const canConnect = process.allowedNodeEnvironmentFlags.has('--use-env-proxy');

  it.runIf(canConnect)('connects to the node', async () => {
    const proxy = await startConnectProxy();
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    const tls = selfSigned('DNS:elsewhere.test') ?? expect.fail('openssl is missing');
    const node = await openNode({ tls });
    const elsewhere = node.url.replace('127.0.0.1', 'elsewhere.test');
    const { disconnected, problems } = open(elsewhere);
    await disconnected();
    // The handshake reached the node, whose certificate is unknown here.
    expect(problems).toEqual([expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT')]);
    expect(proxy.targets).toEqual([new URL(elsewhere).host]);
  });
});
