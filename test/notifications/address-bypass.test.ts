import type { LookupAddress } from 'node:dns';
import { expect, it, onTestFinished } from 'vitest';
import { checkWebhookUrl } from '../../src/notifications/channels/webhook.ts';
import {
  createAddressGuard,
  type LookupAll,
} from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { openReceiver } from '../support/servers/receiver.ts';

/**
 * Known ways to direct requests to internal addresses: refused when the address is configured, or
 * when a connection is opened.
 */
const guard = createAddressGuard({ allow: [] });

/**
 * The responses of the attacker's resolver for each name; literal addresses are never looked up.
 */
const NAMES: Record<string, string[]> = {
  'localtest.me': ['127.0.0.1'],
  '127.0.0.1.nip.io': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'metadata.google.internal.': ['169.254.169.254'],
  'mapped.test': ['::ffff:127.0.0.1'],
  'nat64.test': ['64:ff9b::7f00:1'],
  'sixtofour.test': ['2002:7f00:1::'],
  'unspecified.test': ['0.0.0.0', '::'],
  'scoped.test': ['fe80::1%lo'],
  'many.test': ['10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', 'fd00::1', '::1'],
  'no-address.test': ['localhost', '127.0.0.1:80', ''],
};

/** Spellings of internal addresses; the test of the address guard has the ranges. */
const HOSTS = [
  ...['127.0.0.1', '127.1', '0', '2130706433', '017700000001', '0x7f.1', '127.0.0.1.'],
  ...['１２７.０.０.１', '127。0。0。1', '①②⑦.0.0.1', '127.0.0.%31'],
  ...['[::1]', '[::]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...['[2002:7f00:1::]', '[fe80::1]', '169.254.169.254', '0xa9fea9fe', '[::ffff:a9fe:a9fe]'],
  ...['localhost', 'LOCALHOST.', 'a.localhost', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'loc\u00adalhost', 'l%6fcalhost'],
  ...Object.keys(NAMES),
];

const URLS = [
  ...HOSTS.map((host) => `http://${host}:PORT/`),
  'http://example.com@127.0.0.1:PORT/',
  'http://127.0.0.1:PORT@127.1:PORT/',
  'http://example.com\\@127.0.0.1:PORT/',
  'http:\\\\127.0.0.1:PORT/',
  'http:///127.0.0.1:PORT/',
  'http://127.0.0.1:PORT#@example.com/',
  'http://12\n7.0.0.1:PORT/',
  '\u0000http://127.0.0.1:PORT/',
  '//127.0.0.1:PORT/',
  'gopher://127.0.0.1:PORT/_x',
  'file:///etc/passwd',
  'http+unix://%2Fvar%2Frun%2Fdocker.sock/',
];

const resolve: LookupAll = (hostname, _options, callback) => {
  const addresses = NAMES[hostname] ?? ['127.0.0.1'];
  const found = addresses.map(
    (address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }),
  );
  process.nextTick(callback, null, found);
};

it('no connection is made to an internal address, however it is written', async () => {
  // Listens on every address of this machine, to detect connections that pass the guard.
  const inside = await openReceiver({}, { host: '::' });
  const http = createHttpPost({ guard, version: '1.2.3', lookup: resolve });
  onTestFinished(() => http.close());
  for (const text of URLS) {
    const url = text.replaceAll('PORT', String(inside.port));
    const refusal = checkWebhookUrl(url, { allowHttp: true, guard });
    // Addresses that were stored before a rule existed, or by other means, are refused, too.
    const posted = await http.post({ url, body: '{}', signal: new AbortController().signal });
    expect([posted.kind, inside.connections.total()], text).toEqual(['no_response', 0]);
    if (refusal === undefined) expect(Object.keys(NAMES)).toContain(new URL(url).hostname);
  }
});

it('no redirect of an allowed receiver is followed', async () => {
  const inside = await openReceiver({}, { host: '127.0.0.2' });
  const targets = [
    `http://127.0.0.2:${inside.port}/`,
    `//127.0.0.2:${inside.port}/`,
    'http://169.254.169.254/',
    'file:///etc/passwd',
  ];
  const statuses = [301, 302, 307];
  const receivers = statuses.flatMap((status) =>
    targets.map((location) => ({
      status,
      headers: { location, refresh: `0; url=${location}`, link: `<${location}>` },
    })),
  );
  const outside = await openReceiver(receivers);
  const allowed = createAddressGuard({ allow: ['127.0.0.1/32'] });
  const http = createHttpPost({ guard: allowed, version: '1.2.3' });
  onTestFinished(() => http.close());
  for (const { status } of receivers) {
    const posted = await http.post({
      url: outside.url,
      body: '{}',
      signal: new AbortController().signal,
    });
    expect(posted).toMatchObject({ kind: 'response', httpStatus: status });
  }
  expect([outside.requests.length, inside.connections.total()]).toEqual([receivers.length, 0]);
});
