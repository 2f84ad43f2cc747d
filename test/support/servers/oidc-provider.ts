import { generateKeyPairSync } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider, { type JWK } from 'oidc-provider';
import { expect, onTestFinished } from 'vitest';
import type { Config } from '../../../src/wiring/settings.ts';
import { call } from '../app/http-calls.ts';
import { openApp } from '../app/running-app.ts';
import { deadAddress } from './upstream-server.ts';

export const CLIENT = { id: 'dawatch', secret: 'a-client-secret-for-tests' };

export type OidcProvider = {
  url: string;
  /**
   * The claims of the person who signs in, without questions; `sub` names the person. undefined:
   * the person refuses.
   */
  person: (Record<string, unknown> & { sub: string }) | undefined;
  /** Further claims, which only the userinfo endpoint returns. */
  userInfo: Record<string, unknown>;
  /** Responds instead of the provider; undefined: the provider responds. */
  fault: ((path: string, response: ServerResponse) => boolean) | undefined;
  /** The paths of all requests. */
  paths: string[];
  close(): Promise<void>;
};

function makeKey(kid: string): JWK {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } as JWK;
}

const KEY = makeKey('the-key');

/** A real provider, closed when the test ends. */
export async function openOidcProvider(options: { redirectUri: string }): Promise<OidcProvider> {
  const opened = await startOidcProvider(options);
  onTestFinished(() => opened.close());
  return opened;
}

/** A real provider whose sign-in page asks nothing. `redirectUri`: the only one that it accepts. */
async function startOidcProvider({ redirectUri }: { redirectUri: string }): Promise<OidcProvider> {
  let handle: (request: IncomingMessage, response: ServerResponse) => unknown;
  const server = createServer((request, response) => {
    const path = request.url?.split('?')[0] ?? '';
    opened.paths.push(path);
    if (opened.fault?.(path, response) !== true) void handle(request, response);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const opened: OidcProvider = {
    url,
    person: { sub: 'ada', email: 'ada@example.com', email_verified: true, groups: ['watchers'] },
    userInfo: {},
    fault: undefined,
    paths: [],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
  const provider = new Provider(url, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        post_logout_redirect_uris: [new URL('../../../', redirectUri).href],
      },
    ],
    cookies: { keys: ['a-key-for-cookies'] },
    jwks: { keys: [KEY] },
    conformIdTokenClaims: false,
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['groups', 'realm_access'],
    },
    findAccount: async (_, accountId) => ({
      accountId,
      claims: async (use) => ({
        ...opened.person,
        ...(use === 'userinfo' && opened.userInfo),
        sub: accountId,
      }),
    }),
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        // The default page loads fonts from elsewhere.
        logoutSource: (context, form) => {
          const button =
            '<button form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button>';
          context.body = `<!doctype html><title>Sign out</title>${form}${button}`;
        },
      },
    },
    interactions: { url: async (_, { uid }) => `/interaction/${uid}` },
    ttl: {
      AccessToken: 60,
      AuthorizationCode: 60,
      Grant: 60,
      IdToken: 60,
      Interaction: 60,
      Session: 60,
    },
    async loadExistingGrant(context) {
      const { Grant } = context.oidc.provider;
      const grant = new Grant({
        clientId: context.oidc.client?.clientId ?? '',
        accountId: context.oidc.session?.accountId ?? '',
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
  });
  const callback = provider.callback();
  handle = (request, response) =>
    request.url?.startsWith('/interaction/')
      ? provider.interactionFinished(
          request,
          response,
          opened.person ? { login: { accountId: opened.person.sub } } : { error: 'access_denied' },
        )
      : callback(request, response);
  return opened;
}

/** The provider's own configuration with these changes. */
export function configuredWith({ url }: OidcProvider, changes: Record<string, unknown>) {
  const configuration = {
    issuer: url,
    authorization_endpoint: `${url}/auth`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/jwks`,
    userinfo_endpoint: `${url}/me`,
    ...changes,
  };
  return (path: string, response: ServerResponse): boolean => {
    if (!path.startsWith('/.well-known/')) return false;
    response.setHeader('content-type', 'application/json').end(JSON.stringify(configuration));
    return true;
  };
}

/** Responses of a provider that signs with a key other than the one that it publishes. */
export function publishesAnotherKey(path: string, response: ServerResponse): boolean {
  if (path !== '/jwks') return false;
  const { kty, n, e, kid, use, alg } = makeKey('the-key') as Record<string, string>;
  response
    .setHeader('content-type', 'application/json')
    .end(JSON.stringify({ keys: [{ kty, n, e, kid, use, alg }] }));
  return true;
}

type AppSetting = Parameters<typeof openApp>[0];

type ProviderSetting = Omit<AppSetting, 'oidc'> & { oidc?: Partial<Config['oidc']> };

/** The real app with a provider, closed when the test ends. */
export async function openWithProvider(setting: ProviderSetting) {
  const opened = await startWithProvider(setting);
  onTestFinished(() => opened.close());
  return opened;
}

/**
 * The real app with a provider: the group "watchers" has the role operator, "admins" the role
 * admin. `oidc`: further settings.
 */
export async function startWithProvider(setting: ProviderSetting) {
  const url = await deadAddress();
  const base = new URL(`${(setting.publicUrl ?? url).replace(/\/$/, '')}/`);
  const redirectUri = new URL('v1/session/oidc/callback', base).href;
  const provider = await startOidcProvider({ redirectUri });
  const oidc: Config['oidc'] = {
    issuer: provider.url,
    client_id: CLIENT.id,
    client_secret: CLIENT.secret,
    scopes: ['openid', 'email', 'profile'],
    role_claim: 'groups',
    roles: { admin: ['admins'], operator: ['watchers'], service: [], user: ['lookups'] },
    ...setting.oidc,
  };
  const open = (changed: Partial<AppSetting> = {}) =>
    openApp({ port: Number(new URL(url).port), publicUrl: url, ...setting, oidc, ...changed });
  let app = await open();
  /** The client of the next requests, if a proxy is trusted. */
  const client = { address: '192.0.2.1' };

  const get = (path: string, cookie = '') =>
    call(url, path, {
      headers: { 'x-api-key': [], cookie, 'x-forwarded-for': client.address },
    });

  /**
   * Begins a sign-in and passes through the provider. Returns the path to which the provider
   * redirects.
   */
  async function begin(to = '', cookie = '', more = '') {
    const start = await get(`/v1/session/oidc?to=${encodeURIComponent(to)}${more}`, cookie);
    expect(start.status, start.text).toBe(302);
    const browser = start.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const jar = new Map<string, string>();
    let location = start.headers.location ?? '';
    while (!location.startsWith(`${url}/`)) {
      const sent = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
      const response = await fetch(location, { redirect: 'manual', headers: { cookie: sent } });
      for (const text of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? [];
        jar.set(name, value);
      }
      location = new URL(
        response.headers.get('location') ?? expect.fail(await response.text()),
        location,
      ).href;
    }
    return { callback: location.slice(url.length), browser };
  }
  const finish = async (callback: string, cookie: string) => {
    const { status, headers, text } = await get(callback, cookie);
    expect(status, text).toBe(302);
    const session = headers['set-cookie']?.find((one) => /dawatch-session/.test(one));
    const failed = /#\/sign-in\?failed=(\w+)$/.exec(headers.location ?? '')?.[1];
    expect(session === undefined).toBe(failed !== undefined);
    return {
      failed,
      location: headers.location,
      cookie: session?.split(';')[0],
      attributes: session?.split('; ').slice(1),
    };
  };
  return {
    url,
    provider,
    oidc,
    client,
    get,
    begin,
    finish,
    async signIn(to = '') {
      const { callback, browser } = await begin(to);
      return await finish(callback, browser);
    },
    async restart(changed: Partial<AppSetting> = {}) {
      await app.close();
      app = await open(changed);
    },
    async close() {
      await app.close();
      await provider.close();
    },
  };
}
