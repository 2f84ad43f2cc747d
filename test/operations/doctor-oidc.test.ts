import { expect, it } from 'vitest';
import { loadConfig } from '../../src/operations/config/load.ts';
import { checkProvider } from '../../src/operations/doctor/receivers.ts';
import { CLIENT, openOidcProvider } from '../support/servers/oidc-provider.ts';
import { deadAddress } from '../support/servers/upstream-server.ts';

const PUBLIC = 'https://da.example/';

async function findingsFor(issuer: string, { scopes = ['openid'], publicUrl = PUBLIC } = {}) {
  const { config } = loadConfig({ env: {}, file: null });
  const oidc = {
    ...config.oidc,
    issuer,
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    scopes,
  };
  return await checkProvider(
    { ...config, oidc, server: { ...config.server, public_url: publicUrl } },
    5_000,
  );
}

it('the provider responds, and the redirect address is shown', async () => {
  const provider = await openOidcProvider({ redirectUri: `${PUBLIC}v1/session/oidc/callback` });
  expect(await findingsFor(provider.url)).toEqual([
    {
      name: 'oidc',
      status: 'ok',
      message:
        'the provider responds; it must allow the redirect to https://da.example/v1/session/oidc/callback',
      action: null,
    },
  ]);
});

it('warns of unknown scopes, and of people who sign in without https', async () => {
  const provider = await openOidcProvider({ redirectUri: `${PUBLIC}v1/session/oidc/callback` });
  const found = await findingsFor(provider.url, {
    scopes: ['openid', 'teams'],
    publicUrl: 'http://da.example',
  });
  expect(found.map(({ name, status }) => [name, status])).toEqual([
    ['oidc', 'ok'],
    ['oidc.scopes', 'warning'],
    ['oidc.public_url', 'warning'],
  ]);
});

it('reports a provider that is away, and one with another name', async () => {
  expect(await findingsFor(await deadAddress())).toMatchObject([
    {
      name: 'oidc',
      status: 'problem',
      message: 'people cannot sign in at the provider: the connection was refused',
    },
  ]);
  const provider = await openOidcProvider({ redirectUri: `${PUBLIC}v1/session/oidc/callback` });
  expect(await findingsFor(provider.url.replace('127.0.0.1', 'localhost'))).toMatchObject([
    { status: 'problem' },
  ]);
});
