import type {
  ClientAuth,
  Configuration,
  CustomFetch,
  IDToken,
  ServerMetadata,
} from 'openid-client';
import { codeOf, sentenceOf } from '../lib/http-call.ts';
import { isObject } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import type { AccessSettings } from './settings.ts';

type OidcSettings = AccessSettings['oidc'];

export type Claims = Readonly<Record<string, unknown>>;

/** A name with dots, such as a URL, is first looked up as a whole. */
export function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  return name
    .split('.')
    .reduce<unknown>(
      (node, key) => (isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined),
      claims,
    );
}

/**
 * unavailable: the provider is unreachable or differs from the settings. denied: by the person or
 * the provider. invalid: a check failed. state: this browser has no pending sign-in. The dashboard
 * has a message for each. `detail` has no tokens or personal data.
 */
export class SignInError extends Error {
  override readonly name = 'SignInError';
  readonly reason: 'unavailable' | 'denied' | 'invalid' | 'state' | 'no_role' | 'revoked';
  readonly detail: string | undefined;

  constructor(reason: SignInError['reason'], detail?: string, cause?: unknown) {
    super(detail ?? reason, { cause });
    this.reason = reason;
    this.detail = detail;
  }
}

const TIMEOUT_S = 10;
/** Of a response, decoded: endpoints, keys and tokens have some kB. */
const MAX_BODY_BYTES = 1024 * 1024;
const CLOCK_TOLERANCE_S = 30;
/** The endpoints of the provider are read again after this time. */
const DISCOVERY_MS = 3_600_000;

export type Checks = { state: string; nonce: string; verifier: string };

/**
 * Authorization code flow with PKCE. Library and endpoints are loaded at the first sign-in and
 * after a failure, so that an unavailable provider affects only sign-ins.
 */
export class Provider {
  readonly #settings: OidcSettings;
  #discovered: { at: number; configuration: Promise<Configuration> } | undefined;

  constructor(settings: OidcSettings) {
    this.#settings = settings;
  }

  /** Returns the address of the sign-in page, and the values to keep. Throws SignInError. */
  async begin(
    redirectUri: string,
    state: string,
  ): Promise<{ url: URL; nonce: string; verifier: string }> {
    const client = await import('openid-client');
    const configuration = await this.#configuration();
    const [nonce, verifier] = [client.randomNonce(), client.randomPKCECodeVerifier()];
    const url = client.buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: this.#settings.scopes.join(' '),
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    });
    return { url, nonce, verifier };
  }

  /** Returns the verified claims. `response`: the redirected address. Throws SignInError. */
  async complete(response: URL, { state, nonce, verifier }: Checks): Promise<IDToken> {
    const client = await import('openid-client');
    const configuration = await this.#configuration();
    try {
      const tokens = await client.authorizationCodeGrant(configuration, response, {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (!claims) throw new SignInError('invalid', 'there is no ID token');
      if (claims.sub.trim() === '')
        throw new SignInError('invalid', 'the ID token has an empty subject');
      // With a code flow, a provider may have claims at its userinfo endpoint only.
      const isRoleKnown = claimAt(claims, this.#settings.role_claim) !== undefined;
      const { userinfo_endpoint: userInfo } = configuration.serverMetadata();
      if (userInfo === undefined || (isRoleKnown && claims.email !== undefined)) return claims;
      const more = await client
        .fetchUserInfo(configuration, tokens.access_token, claims.sub)
        .catch((error) => {
          if (isRoleKnown) return;
          if (isUnavailable(error)) throw error;
          // A challenge is about the access token here, not about the client.
          const text = escapeText(error.message, 200);
          throw new SignInError('invalid', `claim absent, and none from userinfo: ${text}`, error);
        });
      return { ...more, ...claims };
    } catch (error) {
      // The keys or endpoints of the provider may have changed.
      this.#discovered = undefined;
      throw toSignInError(error);
    }
  }

  async #configuration(): Promise<Configuration> {
    const cached = this.#discovered;
    if (cached && performance.now() - cached.at < DISCOVERY_MS) return cached.configuration;
    const discovered = { at: performance.now(), configuration: discover(this.#settings) };
    this.#discovered = discovered;
    try {
      return await discovered.configuration;
    } catch (error) {
      if (this.#discovered === discovered) this.#discovered = undefined;
      throw new SignInError('unavailable', detailOf(error), error);
    }
  }
}

/** Reads the endpoints of the provider. Rejects with the error of the library. */
export async function discover(
  { issuer = '', client_id: clientId = '', client_secret: secret }: OidcSettings,
  timeoutS = TIMEOUT_S,
): Promise<Configuration> {
  const client = await import('openid-client');
  const authenticate: ClientAuth = (server, ...rest) => {
    // The default of OpenID Connect Discovery, if the provider names no methods.
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    if (secret === undefined) client.None()(server, ...rest);
    else if (methods.includes('client_secret_basic'))
      client.ClientSecretBasic(secret)(server, ...rest);
    else client.ClientSecretPost(secret)(server, ...rest);
  };
  // The signature is verified, too, although TLS protects the response.
  const execute = [client.enableNonRepudiationChecks];
  if (issuer.startsWith('http:')) execute.push(client.allowInsecureRequests);
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    { [client.clockTolerance]: CLOCK_TOLERANCE_S },
    authenticate,
    { execute, timeout: timeoutS, [client.customFetch]: boundedFetch },
  );
  const lacking = lackingIn(configuration.serverMetadata());
  if (lacking !== undefined) throw new SignInError('unavailable', lacking);
  return configuration;
}

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const;
/** Those of the library. A shared secret is not supported. */
const SIGNATURE = /^(?:[EPR]S(?:256|384|512)|Ed25519|EdDSA|ML-DSA-\d+)$/;

/** Returns why nobody can sign in at a provider with this configuration. */
function lackingIn(server: ServerMetadata): string | undefined {
  const protocols = ['https:', new URL(server.issuer).protocol];
  const absent = ENDPOINTS.find(
    (name) => !protocols.includes(URL.parse(String(server[name]))?.protocol ?? ''),
  );
  if (absent !== undefined) return `its configuration has no usable ${absent}`;
  // The default of OpenID Connect Discovery.
  const { id_token_signing_alg_values_supported: algorithms = ['RS256'] } = server;
  return algorithms.some((name) => SIGNATURE.test(name))
    ? undefined
    : escapeText(
        `it signs ID tokens only with ${algorithms.join(', ')}: choose RS256 or ES256`,
        200,
      );
}

/** Rejects with TypeError if the body is too large. */
const boundedFetch: CustomFetch = async (url, options) => {
  const response = await fetch(url, options as RequestInit);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new TypeError(`the response has more than ${MAX_BODY_BYTES} bytes`);
  }
  return new Response(bytes === 0 ? null : Buffer.concat(chunks), response);
};

function toSignInError(error: unknown): SignInError {
  if (error instanceof SignInError) return error;
  const isDenied =
    codeOf(error) === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR' && errorOf(error) === 'access_denied';
  return new SignInError(
    isDenied ? 'denied' : isUnavailable(error) ? 'unavailable' : 'invalid',
    detailOf(error),
    error,
  );
}

/** Returns the text of an error without values of tokens, which the library has in `cause`. */
export function detailOf(error: unknown): string {
  const code = errorOf(error);
  if (code === 'invalid_client' || codeOf(error) === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE')
    return 'the provider refuses the client: check oidc.client_id and oidc.client_secret';
  if (code !== undefined) return `the provider returned ${escapeText(code, 64)}`;
  if (isUnavailable(error)) return sentenceOf(error instanceof Error ? error.cause : error);
  return error instanceof Error ? escapeText(error.message, 200) : 'the request failed';
}

/** Returns the code of an OAuth error response, such as invalid_grant. */
function errorOf(error: unknown): string | undefined {
  return error instanceof Error && 'error' in error && typeof error.error === 'string'
    ? error.error
    : undefined;
}

function isUnavailable(error: unknown): boolean {
  return (
    codeOf(error) === 'OAUTH_TIMEOUT' ||
    (error instanceof TypeError && error.cause instanceof Error)
  );
}
