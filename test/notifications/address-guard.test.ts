import { getEventListeners, once } from 'node:events';
import type { Socket } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAddressRange } from '../../src/lib/addresses.ts';
import {
  checkHost,
  createAddressGuard,
  guardedConnector,
} from '../../src/notifications/transport/address-guard.ts';
import { openReceiver } from '../support/servers/receiver.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const guard = createAddressGuard({ allow: [] });

describe('only addresses of the public internet are allowed', () => {
  it.each([
    ['8.8.8.8'],
    ['1.1.1.1'],
    ['100.128.0.0'],
    ['172.32.0.0'],
    ['168.63.129.15'],
    ['2606:4700:4700::1111'],
    ['2A00:1450:4001:0830:0000:0000:0000:200E'],
    ['[2001:4860:4860::8888]'],
    ['::ffff:8.8.8.8'],
  ])('%s is allowed', (address) => {
    expect(guard.check(address)).toBeUndefined();
  });

  it.each([
    ['127.0.0.1', 'loopback'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['169.254.169.254', 'link-local'],
    ['100.64.0.1', 'carrier-grade NAT'],
    ['0.0.0.0', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['240.0.0.1', 'reserved'],
    ['192.0.0.192', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['168.63.129.16', 'cloud metadata'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['fc00::1', 'unique local'],
    ['fd00:ec2::254', 'unique local'],
    ['fec0::1', 'site-local'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'reserved'],
    ['100::1', 'discard'],
    ['2001:2::1', 'benchmarking'],
    ['2001::1', 'Teredo'],
    ['2001:20::1', 'ORCHID'],
    ['2002:7f00:1::', '6to4'],
    ['64:ff9b::7f00:1', 'NAT64'],
    ['64:ff9b:1::1', 'NAT64'],
    ['5f00::1', 'segment routing'],
    ['4000::1', 'reserved'],
    ['::8.8.8.8', 'reserved'],
    ['::ffff:0:127.0.0.1', 'NAT64'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['0:0:0:0:0:FFFF:A9FE:A9FE', 'link-local'],
    ['::ffff:168.63.129.16', 'cloud metadata'],
    ['[::1]', 'loopback'],
    ['0x7f.1', 'loopback'],
    ['0xA9FEA9FE', 'link-local'],
  ])('%s is refused: %s', (address, kind) => {
    expect(guard.check(address)).toBe(
      `its address is not public (${kind}), and not in webhooks.allow`,
    );
  });

  it.each([
    '',
    ' ',
    'localhost',
    '8.8.8.8 ',
    '8.8.8.8:80',
    '8.8.8.8/32',
    '8.8.8.256',
    '1.2.3.4.5',
    '::1::',
    ':',
    '[',
    '8.8.8.8#a@1',
  ])('"%s" is refused: it is not an address', (text) => {
    expect(guard.check(text)).toBe('it is not an IP address');
  });
});

const hex = fc.nat(0xffff).map((part) => part.toString(16));

it('no v6 address outside 2000::/3 is allowed, except v4-mapped ones', () => {
  const head = fc.nat(0xffff).filter((part) => part >> 13 !== 1);
  const address = fc.tuple(head, fc.array(hex, { minLength: 7, maxLength: 7 }));
  fc.assert(
    fc.property(address, ([first, rest]) => {
      const text = [first.toString(16), ...rest].join(':');
      return text.startsWith('0:0:0:0:0:ffff:') || guard.check(text) !== undefined;
    }),
  );
});

it('a host name without an address is refused', async () => {
  await expect(
    checkHost('receiver.test', guard, (_hostname, _options, callback) => callback(null, [])),
  ).rejects.toThrow('the host name has no address');
});

describe('the allow-list', () => {
  const { check } = createAddressGuard({
    allow: ['10.1.0.0/16', 'fd12::/16', '168.63.129.16', '::ffff:127.0.0.1'],
  });

  it.each(['10.1.2.3', '::ffff:10.1.2.3', 'fd12:3::4', '168.63.129.16', '127.0.0.1'])(
    'allows %s',
    (address) => {
      expect(check(address)).toBeUndefined();
    },
  );

  it.each([
    '10.2.0.1',
    '::ffff:10.2.0.1',
    'fd13::1',
    '::10.1.2.3',
    '2002:a01:203::',
    '192.168.0.1',
    '::1',
  ])('does not allow %s', (address) => {
    expect(check(address)).toMatch(/not public/);
  });

  it('does not restrict the public internet', () => {
    expect([check('8.8.8.8'), check('2606:4700::1')]).toEqual([undefined, undefined]);
  });

  it('is refused as a whole if one entry is no address or range', () => {
    expect(() => createAddressGuard({ allow: ['10.0.0.0/8', '10.0.0'] })).toThrow(TypeError);
  });
});

it.each([
  '10.0.0.0/8',
  '10.1.2.3/32',
  '10.1.2.3',
  '::1',
  '0.0.0.0/0',
  '::1/128',
  'fd00::/8',
  '::ffff:10.0.0.0/104',
])('%s is an address or a range', (text) => {
  expect(isAddressRange(text)).toBe(true);
});

it.each([
  '',
  '10.0.0',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10/8',
  '010.0.0.0/8',
  '0x0a.0.0.0/8',
  '010.0.0.1',
  'fe80::1%eth0',
  '::/129',
  'x/8',
  '10.0.0.0/8 ',
])('"%s" is neither an address nor a range', (text) => {
  expect(isAddressRange(text)).toBe(false);
});

describe('a connector with a signal that closes all its connections', () => {
  const guard = createAddressGuard({ allow: ['127.0.0.1/32'] });
  const connectTo = (port: number, signal: AbortSignal) =>
    new Promise<Error | Socket>((resolve) =>
      guardedConnector({ guard, timeoutMs: 5_000, signal, lookup: () => undefined })(
        { hostname: '127.0.0.1', protocol: 'http:', port: String(port) },
        (error, socket) => resolve(socket ?? (error as Error)),
      ),
    );

  it('keeps no reference to closed connections, however they were closed', async () => {
    const all = new AbortController();
    const { port } = await openReceiver();
    for (let times = 0; times < 3; times++) {
      const socket = (await connectTo(port, all.signal)) as Socket;
      const closed = once(socket, 'close');
      socket.destroy();
      await closed;
      const { port: closedPort } = new URL(await deadAddress());
      expect(await connectTo(Number(closedPort), all.signal)).toBeInstanceOf(Error);
    }
    expect(getEventListeners(all.signal, 'abort')).toEqual([]);
  });

  it('closes open connections', async () => {
    const all = new AbortController();
    const socket = (await connectTo((await openReceiver()).port, all.signal)) as Socket;
    const closed = new Promise((resolve) =>
      socket.on('error', () => undefined).once('close', resolve),
    );
    all.abort();
    await closed;
    expect(await connectTo(1, all.signal)).toBeInstanceOf(Error);
  });
});
