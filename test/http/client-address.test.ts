import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { assert, constantFrom, oneof, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clientAddressReader } from '../../src/http/connections.ts';
import { networkOf } from '../../src/lib/addresses.ts';
import { call } from '../support/app/http-calls.ts';
import { appForTest } from '../support/app/running-app.ts';

const PROXY = '10.0.0.1';
const TRUSTED = [PROXY, '10.0.1.0/24', 'fd00::/8', 'loopback'];

function clientOf(
  headers: IncomingHttpHeaders,
  peer: string | undefined = PROXY,
  trusted: readonly string[] = TRUSTED,
) {
  const request = { socket: { remoteAddress: peer }, headers } as unknown as IncomingMessage;
  return clientAddressReader(trusted)(request);
}
const xff = (value: string) => clientOf({ 'x-forwarded-for': value });

describe('without a trusted proxy in between, the peer is the client', () => {
  const claims = { 'x-forwarded-for': '192.0.2.1' };
  it.each([
    ['no proxy is trusted', claims, PROXY, []],
    ['the peer is not trusted', claims, '10.0.0.2', TRUSTED],
    ['the peer sends no header', {}, PROXY, TRUSTED],
    [
      'another header names an address',
      { forwarded: 'for=192.0.2.1', 'x-real-ip': '192.0.2.1' },
      PROXY,
      TRUSTED,
    ],
  ])('%s', (_, headers, peer, trusted) => {
    expect(clientOf(headers, peer, trusted)).toBe(peer);
  });

  it('is normalized to one spelling', () => {
    expect(clientOf({}, '::ffff:10.0.0.9')).toBe('10.0.0.9');
    expect(clientOf({}, 'fe80::1%eth0')).toBe('fe80::1');
    const gone = {
      socket: {},
      headers: { 'x-forwarded-for': '192.0.2.1' },
    } as unknown as IncomingMessage;
    expect(clientAddressReader(TRUSTED)(gone)).toBe('unknown');
  });
});

describe('a trusted proxy is known', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['172.31.0.1', 'private'],
    ['fd12::1', 'private'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8::1', '2001:DB8:0:0::1'],
    ['2001:db8::ffff', '2001:db8::1/64'],
  ])('%s as %s', (peer, entry) => {
    expect(clientOf({ 'x-forwarded-for': '192.0.2.1' }, peer, [entry])).toBe('192.0.2.1');
  });

  it.each([
    ['172.32.0.1', 'private'],
    ['::2', 'loopback'],
    ['2001:db8:0:1::1', '2001:db8::/64'],
  ])('%s not as %s', (peer, entry) => {
    expect(clientOf({ 'x-forwarded-for': '192.0.2.1' }, peer, [entry])).toBe(peer);
  });
});

describe('the chain is followed from the nearest hop to the first that is not trusted', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    [' 192.0.2.1 ', '192.0.2.1'],
    ['192.0.2.66, 192.0.2.1', '192.0.2.1'],
    ['10.0.0.1, 192.0.2.1, 10.0.1.7, fd00::2', '192.0.2.1'],
    ['10.0.1.8, 10.0.1.7', '10.0.1.8'],
    ['192.0.2.1:5678', '192.0.2.1'],
    ['[2001:db8::1]:443', '2001:db8::1'],
    ['2001:DB8::0:1', '2001:db8::1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['192.0.2.1,', '192.0.2.1'],
    ['192.0.2.66, , 192.0.2.1,,', '192.0.2.1'],
  ])('X-Forwarded-For: %s', (header, client) => {
    expect(xff(header)).toBe(client);
  });
});

describe('a hop that names no address ends the chain at the last trusted one', () => {
  it.each([
    ['unknown', PROXY],
    ['192.0.2.1, _hidden, 10.0.1.7', '10.0.1.7'],
    ['010.0.0.9', PROXY],
    ['1', PROXY],
    ['"192.0.2.1"', PROXY],
    ['fe80::1%eth0', PROXY],
    ['[192.0.2.1]', PROXY],
    ['[2001:db8::1', PROXY],
    ['2001:db8::1:443:1:1:1:1:1:1:1', PROXY],
    ['<script>', PROXY],
  ])('X-Forwarded-For: %s', (header, client) => {
    expect(xff(header)).toBe(client);
  });
});

it('a forged header gains a client no address but its own and that of the proxy', () => {
  const parts = oneof(string(), constantFrom(',', '10.0.1.7', '192.0.2.66', '[::1]', ' '));
  assert(
    property(parts, parts, parts, parts, (...texts) => {
      const claimed = texts.join('').replaceAll(/[\r\n]/g, '');
      expect(xff(`${claimed}, 192.0.2.1`)).toBe('192.0.2.1');
      expect(isIP(xff(claimed))).not.toBe(0);
    }),
  );
});

it.each([
  ['192.0.2.1', '192.0.2.1'],
  ['unknown', 'unknown'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001::2:3:4:5:6', '2001:0:0:2::/64'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

describe('the limits of a server behind a proxy', () => {
  /** Sends a request through a proxy on this machine, on behalf of this client. */
  async function behindProxy(trustedProxies: string[]) {
    const limits = { failed_authentications_per_minute: 2 };
    const app = await appForTest({
      trustedProxies,
      limits,
    });
    const guess = async (headers: Record<string, string | string[]>) =>
      (
        await call(app.url, '/v1/submissions', {
          headers: { 'x-api-key': crypto.randomUUID(), ...headers },
        })
      ).status;
    return { app, guess, guessFrom: (client: string) => guess({ 'x-forwarded-for': client }) };
  }

  it('are those of each client', async () => {
    const { guessFrom } = await behindProxy(['loopback']);
    const attacker = '192.0.2.66';
    expect([await guessFrom(attacker), await guessFrom(`1.1.1.1, ${attacker}`)]).toEqual([
      401, 401,
    ]);
    expect(await guessFrom(attacker)).toBe(429);
    expect(await guessFrom('192.0.2.1')).toBe(401);
  });

  it('follow all lines of a header', async () => {
    const { guess } = await behindProxy(['loopback']);
    const lines = (name: string, ...values: string[]) => guess({ [name]: values });
    await lines('x-forwarded-for', '192.0.2.1', '192.0.2.66');
    await lines('x-forwarded-for', '192.0.2.1', '192.0.2.66, 127.0.0.1');
    expect(await lines('x-forwarded-for', '192.0.2.2', '192.0.2.66')).toBe(429);
    expect(await lines('x-forwarded-for', '192.0.2.66', '192.0.2.1')).toBe(401);
  });
});
