import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/wiring/settings.ts';
import { tempFolder } from '../support/temp-folder.ts';

const COMPLETE = {
  server: { public_url: 'https://da.example' },
  oidc: {
    issuer: 'https://login.example/realms/staff',
    client_id: 'dawatch',
    roles: { admin: ['admins'] },
  },
};

function load(settings: object, env: Record<string, string> = {}) {
  const file = join(tempFolder(), 'dawatch.yaml');
  writeFileSync(file, JSON.stringify(settings));
  return loadConfig({ env, file });
}

describe('the settings of OpenID Connect', () => {
  it('are complete with an issuer, a client, a role and the public address', () => {
    const { config, settings } = load(COMPLETE, { DAWATCH_OIDC_CLIENT_SECRET: 'a-secret' });
    expect(config.oidc).toMatchObject({
      client_secret: 'a-secret',
      role_claim: 'groups',
      roles: { operator: [] },
    });
    expect(settings.find(({ path }) => path === 'oidc.client_secret')?.source).toBe(
      'DAWATCH_OIDC_CLIENT_SECRET',
    );
  });

  it.each(['http://127.0.0.1:8080', 'http://localhost/realms/a', 'http://[::1]:1/'])(
    'accept %s, on this machine',
    (issuer) => {
      expect(load({ ...COMPLETE, oidc: { ...COMPLETE.oidc, issuer } }).config.oidc.issuer).toBe(
        issuer,
      );
    },
  );

  it.each([
    ['http elsewhere', { issuer: 'http://login.example' }, 'oidc.issuer must be an https://'],
    ['a query', { issuer: 'https://login.example?a' }, 'oidc.issuer must be an address without'],
    [
      'a password',
      { issuer: 'https://a:b@login.example' },
      'oidc.issuer must be an address without',
    ],
    ['no client', { client_id: undefined }, 'oidc.client_id is required'],
    ['no role', { roles: {} }, 'oidc.roles must give a role'],
    ['an unknown role', { roles: { root: ['a'] } }, 'oidc.roles'],
    ['scopes without openid', { scopes: ['email'] }, 'oidc.scopes must contain openid'],
    ['a scope with a space', { scopes: ['openid', 'a b'] }, 'must be a scope'],
  ])('are refused with %s', (_, oidc, message) => {
    expect(() => load({ ...COMPLETE, oidc: { ...COMPLETE.oidc, ...oidc } })).toThrow(message);
  });

  it('are refused without the public address', () => {
    expect(() => load({ oidc: COMPLETE.oidc })).toThrow('server.public_url is required');
  });
});
