import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { openChain } from '../../../src/polling/chain/chain.ts';
import { MAX_PENDING_CALLS } from '../../../src/polling/chain/node-connection.ts';
import type { ChainHead, ChainStatus } from '../../../src/polling/chain/port.ts';
import { startConnectProxy } from '../../support/servers/connect-proxy.ts';
import { announce, GENESIS, openNode, usualNode } from '../../support/servers/node-server.ts';
import { selfSigned } from '../../support/servers/receiver.ts';
import { deadAddress, serve, serveRaw } from '../../support/servers/upstream-server.ts';
import { createVirtualClock } from '../../support/virtual-time/virtual-clock.ts';

const START_MS = 1_760_000_000_000;
/** Without the work of writing JSON of this size. */
const BYTES_100_MB = Buffer.alloc(100_000_000);
const settingsOf = (urls: string[]) => ({
  urls,
  verify: 'report' as const,
  verify_data: false,
});

/** A chain in virtual time, without jitter, until the test ends. */
function open(...urls: string[]) {
  const clock = createVirtualClock(START_MS);
  const changes: ChainStatus[] = [];
  const heads: ChainHead[] = [];
  const onChange = (status: ChainStatus) => changes.push(status);
  const chain = openChain({
    settings: settingsOf(urls),
    clock,
    random: () => 1,
    version: '1.2.3',
    onChange,
  });
  onTestFinished(() => chain.close());
  chain.onHead((head) => heads.push(head));
  return {
    chain,
    clock,
    heads,
    changes,
    /** The problems that were reported so far; null: the chain works. */
    problems: () => changes.map(({ problem }) => problem),
    connected: () => expect.poll(() => chain.status()?.nodes[0]?.isConnected).toBe(true),
    /** Waits until listeners have a block. */
    async head(number: number): Promise<void> {
      await expect
        .poll(async () => {
          await clock.advance(100);
          return heads.at(-1)?.number;
        })
        .toBe(number);
    },
    disconnected: () =>
      expect
        .poll(() => [changes.length > 0, chain.status()?.nodes[0]?.isConnected])
        .toEqual([true, false]),
  };
}

describe('finalized blocks', () => {
  it('are announced with their number, which is hexadecimal or a number', async () => {
    const node = await openNode({});
    const { chain, connected, head } = open(node.url);
    await connected();
    node.announce('0x38');
    await head(56);
    node.announce(57);
    await head(57);
    const { host } = new URL(node.url);
    expect(chain.status()).toMatchObject({
      nodes: [{ host }],
      name: 'Test Chain',
      genesisHash: GENESIS,
      head: { number: 57, at: expect.any(Number) },
      problem: null,
    });
  });

  it('have the time of their announcement, if it was not missed', async () => {
    const node = await openNode({});
    const { chain, clock, connected, head, disconnected } = open(node.url);
    await connected();
    node.announce(10);
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
    expect([12, 14, 15].map(chain.finalizedAt)).toEqual([at, null, null]);
    expect(chain.finalizedAt(16)).toBe(chain.status()?.head?.at);
  });

  it('have no time of a higher block that another node announced before', async () => {
    const liar = await openNode({});
    const node = await openNode({});
    const { chain, clock, connected, disconnected, head } = open(liar.url, node.url);
    await connected();
    for (const number of [10, 1_000_000]) liar.announce(number);
    await head(1_000_000);
    liar.disconnect();
    await disconnected();
    await clock.advance(1_000);
    await connected();
    node.announce(11);
    await head(11);
    node.announce(12);
    await head(12);
    expect(chain.finalizedAt(11)).toBeNull();
    expect(chain.finalizedAt(12)).toBeGreaterThan(START_MS + 1_000);
  });

  it('are announced ten times per second at most, with the newest one', async () => {
    const node = await openNode({});
    const { chain, clock, connected, heads } = open(node.url);
    await connected();
    for (let number = 1; number <= 1_000; number += 1) node.announce(number);
    await expect.poll(() => chain.status()?.head?.number).toBe(1_000);
    await clock.advance(1_000);
    expect(heads.at(-1)?.number).toBe(1_000);
    expect(heads.length).toBeLessThanOrEqual(11);
  });

  it('may come twice and out of order', async () => {
    const node = await openNode({});
    const { chain, connected, head } = open(node.url);
    await connected();
    for (const number of [5, 7, 6, 7]) {
      node.announce(number);
      await head(number);
    }
    expect(chain.status()?.head?.number).toBe(7);
  });
});

describe('the next address', () => {
  it('is used if the first one is dead', async () => {
    const dead = (await deadAddress()).replace('http', 'ws');
    const node = await openNode({});
    const { clock, connected, disconnected, problems } = open(dead, node.url);
    await disconnected();
    await clock.advance(1_000);
    await connected();
    expect(problems()).toEqual([`${new URL(dead).host}: the connection was refused`]);
  });

  it('is used if no block is announced for the time of three blocks', async () => {
    const silent = await openNode({});
    const node = await openNode({});
    const { chain, clock, connected, head, problems } = open(silent.url, node.url);
    await connected();
    // Six blocks of 20 s, so that their time is known.
    for (let number = 1; number <= 6; number += 1) {
      silent.announce(number);
      await head(number);
      await clock.advance(20_000);
    }
    expect(problems()).toEqual([null]);
    await clock.advance(41_000);
    expect(problems()).toEqual([null, expect.stringMatching(/announces no finalized blocks/)]);
    await clock.advance(1_000);
    await connected();
    expect(chain.status()).toMatchObject({ nodes: [{ host: new URL(node.url).host }] });
  });

  it('is not used because blocks that became final together arrive at once', async () => {
    const node = await openNode({});
    const { clock, connected, head, problems } = open(node.url);
    await connected();
    for (let number = 1; number <= 10; number += 1) node.announce(number);
    await head(10);
    await clock.advance(58_000);
    expect(problems()).toEqual([null]);
    await clock.advance(3_000);
    expect(problems()).toEqual([null, expect.stringMatching(/announces no finalized blocks/)]);
  });

  it('is used after 60 s without any block', async () => {
    const node = await openNode({});
    const { clock, connected, problems } = open(node.url);
    await connected();
    await clock.advance(59_000);
    expect(problems()).toEqual([null]);
    await clock.advance(2_000);
    expect(problems()).toEqual([null, expect.stringMatching(/announces no finalized blocks/)]);
  });
});

it('waits longer after each failure, up to a minute, and reports each problem once', async () => {
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
  expect(problems()).toHaveLength(1);
});

it('works again when a node has announced a new block', async () => {
  const node = await openNode({});
  const { chain, clock, connected, disconnected, head, problems } = open(node.url);
  await connected();
  node.disconnect();
  await disconnected();
  await clock.advance(1_000);
  await connected();
  expect(chain.status()?.problem).toMatch(/closed the connection/);
  node.announce(1);
  await head(1);
  await clock.advance(20_000);
  node.announce(2);
  await head(2);
  expect(problems()).toEqual([null, expect.any(String), null]);
  expect(chain.status()?.problem).toBeNull();
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
      /does not know the methods of a Substrate node.* such as Ethereum$/,
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
      'a connection closed after the subscription',
      async () => (await openNode({ onSubscribe: (socket) => socket.close(1013, 'busy') })).url,
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
      'a header of 100 MB',
      async () =>
        (await openNode({ onSubscribe: (socket) => socket.send(BYTES_100_MB, { binary: false }) }))
          .url,
      'it sends a message of more than 32 MiB',
    ],
    [
      'a header of 20 MB',
      async () =>
        (await openNode({ onSubscribe: (socket) => announce(socket, 'x'.repeat(20e6)) })).url,
      'it sends a message of more than 16 MiB',
    ],
  ])('%s', async (_, start, expected) => {
    const { chain, problems, changes } = open((await start()).replace(/^http/, 'ws'));
    await vi.waitFor(() => expect(problems().some((problem) => problem !== null)).toBe(true), {
      timeout: 10_000,
    });
    const [host, ...problem] = changes.at(-1)?.problem?.split(': ') ?? [];
    expect(problem.join(': ')).toEqual(
      typeof expected === 'string' ? expected : expect.stringMatching(expected),
    );
    expect(host).toBe(chain.status()?.nodes[0]?.host);
    await expect(chain.call('system_chain', [])).rejects.toMatchObject({ reason: 'not_connected' });
  });

  const tls = selfSigned();
  it.skipIf(!tls)('an untrusted certificate', async () => {
    const node = await openNode({ tls: tls as { key: string; cert: string } });
    const { disconnected, problems } = open(node.url);
    await disconnected();
    expect(problems()).toEqual([expect.stringMatching(/: TLS failed \(DEPTH_ZERO/)]);
  });

  it('no handshake within 10 s', async () => {
    const accepted = vi.fn();
    const { url } = await serveRaw(accepted);
    const { clock, problems } = open(url.replace('http', 'ws'));
    await expect.poll(() => accepted).toHaveBeenCalled();
    await clock.advance(10_000);
    expect(problems()).toEqual([
      expect.stringMatching(/does not complete the WebSocket handshake/),
    ]);
  });

  it('no response within 10 s', async () => {
    const node = await openNode({ respond: 'never' });
    const { clock, problems } = open(node.url);
    await expect.poll(() => node.methods).toHaveLength(3);
    await clock.advance(10_000);
    expect(problems()).toEqual([expect.stringMatching(/no response to chain_subscribe/)]);
  });
});

describe('a call', () => {
  it('may have a response larger than a notification, up to a limit that closes the connection', async () => {
    const respond = (method: string, [size]: unknown[]) =>
      method === 'chain_getBlock' ? { result: 'x'.repeat(Number(size)) } : usualNode(method);
    const node = await openNode({ respond });
    const { chain, connected, problems } = open(node.url);
    await connected();
    expect((await chain.call<string>('chain_getBlock', [20e6])).result).toHaveLength(20e6);
    const tooLarge = chain.call('chain_getBlock', [40e6]);
    await expect(tooLarge).rejects.toMatchObject({ reason: 'too_large' });
    expect(problems()).toEqual([null, expect.stringMatching(/message of more than 32 MiB$/)]);
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
      onSubscribe: (socket) => {
        isSilent = true;
        socket.removeAllListeners('message');
      },
    });
    const { chain, clock, connected } = open(node.url);
    await connected();
    const late = chain.call('chain_getBlock', []).catch(({ reason }) => reason);
    await clock.advance(10_000);
    expect(await late).toBe('timeout');
    const calls = Array.from({ length: MAX_PENDING_CALLS + 1 }, () =>
      chain.call('chain_getBlock', []).catch(({ reason }) => reason),
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
    const { changes, disconnected } = open(
      `${address}/a-secret-key-in-a-path?apikey=a-secret-key-in-a-query`,
    );
    await disconnected();
    const login = Buffer.from('ada:a-password-of-a-node').toString('base64');
    expect(node.requests[0]).toMatchObject({
      authorization: `Basic ${login}`,
      'user-agent': 'dawatch/1.2.3',
    });
    expect(JSON.stringify(changes)).toContain('is unknown');
    expect(JSON.stringify(changes)).not.toMatch(/a-secret-key|a-password/);
  });
});

describe('the proxy of the environment', () => {
  beforeEach(() => {
    for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'])
      for (const variable of [name, name.toLowerCase()]) vi.stubEnv(variable, undefined);
    return () => vi.unstubAllEnvs();
  });

  it('connects to the node', async () => {
    const proxy = await startConnectProxy();
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    const tls = selfSigned('DNS:elsewhere.test') ?? expect.fail('openssl is missing');
    const node = await openNode({ tls });
    const elsewhere = node.url.replace('127.0.0.1', 'elsewhere.test');
    const { disconnected, problems } = open(elsewhere);
    await disconnected();
    // The handshake reached the node, whose certificate is unknown here.
    expect(problems()).toEqual([expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT')]);
    expect(proxy.targets).toEqual([new URL(elsewhere).host]);
  });
});
