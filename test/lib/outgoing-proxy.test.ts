import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { toSendResult } from '../../src/notifications/channels/channel.ts';
import {
  createAddressGuard,
  type LookupAll,
} from '../../src/notifications/transport/address-guard.ts';
import { createHttpPost } from '../../src/notifications/transport/http-post.ts';
import { cli, cliProcess } from '../support/processes/cli.ts';
import { startConnectProxy } from '../support/servers/connect-proxy.ts';
import { openReceiver, selfSigned } from '../support/servers/receiver.ts';
import { deadAddress, openClient, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';

const VARIABLES = ['http_proxy', 'https_proxy', 'no_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);
beforeEach(() => {
  for (const name of VARIABLES) vi.stubEnv(name, undefined);
  return () => vi.unstubAllEnvs();
});

/** A name that no name server has: only the proxy can resolve it. */
const elsewhere = (url: string) => url.replace('127.0.0.1', 'elsewhere.test');

const NOT_FOUND = JSON.stringify({ state: 'ERROR', error: 'record not found' });
const upstream = () => serve((_, response) => response.writeHead(500).end(NOT_FOUND));

function post(url: string, options: Partial<Parameters<typeof createHttpPost>[0]>) {
  const http = createHttpPost({ guard: undefined, version: 'test', ...options });
  onTestFinished(() => http.close());
  const { signal } = new AbortController();
  return http.post({ url, body: '{}', signal }).then(toSendResult);
}

describe('an upstream behind a proxy', () => {
  it('gets its polls through it, by CONNECT with the login of its address', async () => {
    const { url } = await upstream();
    const proxy = await startConnectProxy({ login: 'ada:secret' });
    vi.stubEnv('http_proxy', proxy.url);
    const client = openClient(elsewhere(url));
    expect(await client.getSubmissionInfo('a')).toMatchObject({ httpStatus: 500, body: NOT_FOUND });
    expect(proxy.targets).toEqual([elsewhere(url).replace('http://', '')]);
  });

  it.each<[string, (proxy: { port: number }, dead: string) => string, RegExp]>([
    [
      'refuses',
      ({ port }) => `http://127.0.0.1:${port}`,
      /^the proxy of HTTPS_PROXY or HTTP_PROXY made no connection$/,
    ],
    ['is down', (_, dead) => dead, /^the connection was refused/],
  ])('fails with the proxy as the reason if it %s', async (_, address, reason) => {
    const proxy = await startConnectProxy({ login: 'ada:secret' });
    vi.stubEnv('HTTP_PROXY', address(proxy, await deadAddress()));
    const response = await openClient('http://elsewhere.test').getSubmissionInfo('a');
    expect(response).toMatchObject({ kind: 'failure', detail: expect.stringMatching(reason) });
  });

  it.each([
    ['elsewhere.test', true],
    ['elsewhere.test:1', false],
    ['', false],
  ])('is reached directly if NO_PROXY names it: %j', async (excluded, isDirect) => {
    const { url } = await upstream();
    const proxy = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', proxy.url);
    vi.stubEnv('NO_PROXY', excluded);
    const response = await openClient(elsewhere(url), { timeoutMs: 2_000 }).getSubmissionInfo('a');
    // Its name does not resolve here.
    expect(response.kind).toBe(isDirect ? 'failure' : 'response');
    expect(proxy.targets).toHaveLength(isDirect ? 0 : 1);
  });
});

describe('a receiver behind a proxy', () => {
  const resolvesTo =
    (...addresses: string[]): LookupAll =>
    (_hostname, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: 4 })),
      );

  it('gets a webhook by its name, if its address is allowed', async () => {
    const tls = selfSigned('DNS:elsewhere.test') ?? expect.fail('openssl is missing');
    const receiver = await openReceiver({}, { tls });
    const proxy = await startConnectProxy();
    vi.stubEnv('HTTPS_PROXY', proxy.url);
    const guard = createAddressGuard({ allow: [] });
    const result = await post(elsewhere(receiver.url), {
      guard,
      lookup: resolvesTo('9.9.9.9'),
    });
    // The handshake reached the receiver, whose certificate is unknown here.
    expect(result).toMatchObject({ error: 'TLS failed (DEPTH_ZERO_SELF_SIGNED_CERT)' });
    expect(proxy.targets).toEqual([`elsewhere.test:${receiver.port}`]);
  });

  it.each(['10.0.0.1', '127.0.0.1', '169.254.169.254'])(
    'gets no webhook if its name leads to %s',
    async (address) => {
      const proxy = await startConnectProxy();
      vi.stubEnv('HTTP_PROXY', proxy.url);
      const guard = createAddressGuard({ allow: [] });
      for (const host of ['elsewhere.test', address])
        expect(await post(`http://${host}/`, { guard, lookup: resolvesTo(address) })).toMatchObject(
          { error: expect.stringContaining('refused: its address is not public') },
        );
      expect(proxy.targets).toEqual([]);
    },
  );

  it('gets the messages of a channel by its name, which need not resolve here', async () => {
    const receiver = await openReceiver();
    const proxy = await startConnectProxy();
    vi.stubEnv('HTTP_PROXY', proxy.url);
    const result = await post(elsewhere(receiver.url), {});
    expect(result).toMatchObject({ kind: 'delivered' });
    expect(proxy.targets).toEqual([`elsewhere.test:${receiver.port}`]);
  });
});

it('`dawatch doctor` reaches upstreams, channels, the heartbeat and the provider through the proxy', async () => {
  const { url } = await upstream();
  const tls = selfSigned('DNS:elsewhere.test') ?? expect.fail('openssl is missing');
  const provider = await openReceiver(
    ({ response }) => {
      const issuer = elsewhere(provider.url);
      const endpoints = { authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t` };
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ issuer, jwks_uri: `${issuer}/j`, ...endpoints }));
    },
    { tls },
  );
  const beats = await openReceiver();
  const proxy = await startConnectProxy();
  const folder = tempFolder();
  const settings = {
    database: join(folder, 'dawatch.db'),
    server: { public_url: 'https://watch.test' },
    upstreams: { default: { url: elsewhere(url), api_key: 'a-key' } },
    channels: { ops: { type: 'slack', url: elsewhere(url) } },
    heartbeat: { url: elsewhere(beats.url) },
    oidc: { issuer: elsewhere(provider.url), client_id: 'dawatch', roles: { admin: ['admins'] } },
  };
  const [file, certificate] = [join(folder, 'dawatch.yaml'), join(folder, 'certificate.pem')];
  writeFileSync(file, JSON.stringify(settings), { mode: 0o600 });
  writeFileSync(certificate, tls.cert);
  const { stdout } = await cliProcess(['doctor'], {
    env: {
      DAWATCH_CONFIG: file,
      HTTP_PROXY: proxy.url,
      HTTPS_PROXY: proxy.url,
      NODE_EXTRA_CA_CERTS: certificate,
    },
  });
  for (const name of ['upstream.default', 'channel.ops', 'heartbeat', 'oidc'])
    expect(stdout).toMatch(new RegExp(`^ok +${name} `, 'm'));
  expect(new Set(proxy.targets)).toEqual(
    new Set([provider, beats, new URL(url)].map(({ port }) => `elsewhere.test:${port}`)),
  );
});

it.each(['http://user:100%@h.example', 'http://user:12/34@h.example', 'user:1234@h.example'])(
  'a proxy address from which another host would be derived is refused: %s',
  async (HTTPS_PROXY) => {
    const { code, stderr } = await cli(['config'], { env: { HTTPS_PROXY } });
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringMatching(/^dawatch: HTTPS_PROXY must be .* write % as %25, /),
    });
  },
);
