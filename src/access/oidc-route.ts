import type { FastifyReply, FastifyRequest } from 'fastify';
import { LruMap } from 'toad-cache';
import { z } from 'zod';
import { sendProblem, setRetryAfter } from '../http/problems.ts';
import { logOf, type TypedServer } from '../http/typed-server.ts';
import { LedgerError } from '../ledger/errors.ts';
import { networkOf } from '../lib/addresses.ts';
import { isObject } from '../lib/json.ts';
import { escapeText } from '../lib/text.ts';
import { type Role, sha256 } from './access.ts';
import {
  browserCookieOf,
  makeCookieValue,
  publicBase,
  sessionCookieOf,
  setBrowserCookie,
  setSessionCookie,
} from './cookies.ts';
import { type Claims, claimAt, type Provider, SignInError } from './provider.ts';
import type { PeopleStore } from './sessions.ts';
import type { AccessSettings } from './settings.ts';

/** A person at a provider. `name`: the e-mail address, or the subject without one. */
type Person = { issuer: string; subject: string; name: string };

/** A person with values for several roles gets the first one. */
const PRECEDENCE: readonly Role[] = ['admin', 'operator', 'service', 'user'];
const MAX_NAME_CHARS = 254;

/**
 * An address that is not verified may belong to another person. Entra ID never sends
 * `email_verified`, AWS Cognito may send text.
 */
function personOf(claims: Claims & { iss: string; sub: string }): Person {
  const { iss: issuer, sub: subject, email, email_verified: isVerified } = claims;
  const isAddress =
    typeof email === 'string' && z.regexes.html5Email.test(email) && email.length <= MAX_NAME_CHARS;
  const mayBeUsed = isAddress && [undefined, true, 'true'].some((value) => value === isVerified);
  return { issuer, subject, name: mayBeUsed ? email : escapeText(subject, MAX_NAME_CHARS) };
}

function roleOf(values: readonly unknown[], roles: AccessSettings['oidc']['roles']) {
  return PRECEDENCE.find((role) => roles[role].some((value) => values.includes(value)));
}

/** A text may be a list with commas. An object has the values as its keys, as at Zitadel. */
function valuesOf(claim: unknown): readonly unknown[] {
  if (typeof claim === 'string')
    return [...new Set([claim, ...claim.split(',').map((value) => value.trim())])];
  if (isObject(claim)) return Object.keys(claim).filter((key) => claim[key]);
  return Array.isArray(claim) ? claim : [];
}

/** What the redirect must match. `to`: the page of the dashboard that was open. */
type PendingSignIn = {
  browser: string;
  nonce: string;
  verifier: string;
  to: string;
};

const SIGN_IN_S = 600;
const MAX_PENDING = 10_000;
/** Sign-ins of a network in a minute: each costs requests, and may evict those of others. */
const MAX_PER_MINUTE = 60;

const PATH = 'v1/session/oidc';

export type OidcDeps = {
  config: AccessSettings;
  ledger: { people: PeopleStore };
  clock: { now(): number };
  provider: Provider;
  onRefused: (address: string) => void;
};

/** Where a sign-in at the provider begins; null if people can only sign in with tokens. */
export function oidcSignIn(config: AccessSettings) {
  const base = baseOf(config);
  return base ? { url: new URL(PATH, base).href } : null;
}

/** Two pages that redirect: to the provider, and back to the dashboard. */
export function registerOidc(app: TypedServer, deps: OidcDeps): void {
  const { config, ledger, clock, provider } = deps;
  const { oidc, server } = config;
  const publicUrl = server.public_url;
  const base = baseOf(config);
  // In memory, by state: after a restart, people begin again.
  const pending = new LruMap<PendingSignIn>(MAX_PENDING, SIGN_IN_S * 1_000);
  const begun = app.createRateLimit({
    max: MAX_PER_MINUTE,
    keyGenerator: ({ clientAddress }) => networkOf(clientAddress),
  });
  const begin = z.strictObject({ to: z.string().max(1_000).optional() });

  app.get(
    `/${PATH}`,
    { exposeHeadRoute: false, schema: { hide: true, querystring: begin } },
    async (request, reply) => {
      if (!base) return sendNotConfigured(reply);
      const bucket = await begun(request);
      if (!bucket.isAllowed && bucket.isExceeded) {
        setRetryAfter(reply, bucket.ttl);
        return sendProblem(
          reply,
          429,
          `too many sign-ins were begun from this address; try again in ${bucket.ttlInSeconds} s`,
        );
      }
      const state = makeCookieValue();
      try {
        const { url, ...checks } = await provider.begin(
          new URL(`${PATH}/callback`, base).href,
          state,
        );
        // Several tabs can sign in at the same time.
        const browser = browserCookieOf(request, publicUrl) ?? makeCookieValue();
        const { to = '' } = request.query;
        pending.set(state, { ...checks, browser, to });
        setBrowserCookie(reply, base, { value: browser, maxAgeS: SIGN_IN_S });
        return reply.redirect(url.href);
      } catch (error) {
        return fail(request, reply, base, error);
      }
    },
  );

  app.get(
    `/${PATH}/callback`,
    { exposeHeadRoute: false, schema: { hide: true } },
    async (request, reply) => {
      if (!base) return sendNotConfigured(reply);
      const response = new URL(`${PATH}/callback`, base);
      response.search = request.url.replace(/^[^?]*/, '');
      const state = response.searchParams.get('state') ?? '';
      const signIn = pending.get(state);
      // Only once, and only by the browser that began it.
      if (!signIn || signIn.browser !== browserCookieOf(request, publicUrl))
        return fail(request, reply, base, new SignInError('state'));
      pending.delete(state);
      try {
        const claims = await provider.complete(response, { ...signIn, state });
        const [person, claim] = [personOf(claims), claimAt(claims, oidc.role_claim)];
        const values = valuesOf(claim);
        const role = roleOf(values, oidc.roles);
        if (role === undefined) {
          ledger.people.endSessions(person);
          throw new SignInError(
            'no_role',
            claim === undefined ? 'claim absent' : `none of ${values.length} values in oidc.roles`,
          );
        }
        const [value, earlier] = [makeCookieValue(), sessionCookieOf(request, publicUrl)];
        const session = {
          hash: sha256(value),
          replaces: earlier ? sha256(earlier) : undefined,
        };
        const from = { address: request.clientAddress, now: clock.now() };
        if (ledger.people.signIn({ ...person, role }, session, from) === 'revoked')
          throw new SignInError('revoked');
        setSessionCookie(reply, base, value);
        return reply.redirect(`${base.href}#/${escapePage(signIn.to)}`);
      } catch (error) {
        return fail(request, reply, base, error);
      }
    },
  );

  /** Redirects to the dashboard, which explains the failure. The log has the cause. */
  function fail(
    request: FastifyRequest,
    reply: FastifyReply,
    base: URL,
    error: unknown,
  ): FastifyReply {
    const isLedger = error instanceof LedgerError;
    if (!isLedger && !(error instanceof SignInError)) throw error;
    const address = request.clientAddress;
    const fields = isLedger
      ? { reason: 'ledger', err: error }
      : { reason: error.reason, detail: error.detail };
    if (!isLedger && error.reason !== 'unavailable') deps.onRefused(address);
    logOf(request).warn({ ...fields, address }, 'auth.sign_in_failed');
    return reply.redirect(`${base.href}#/sign-in?failed=${fields.reason}`);
  }
}

/** Encodes characters that would end the fragment or the header. Keeps existing escapes. */
function escapePage(page: string): string {
  return page.replace(/[^\w\-.~!$&'()*+,;=:@/?%]/gu, encodeURIComponent);
}

function sendNotConfigured(reply: FastifyReply): FastifyReply {
  return sendProblem(reply, 404, 'no provider is configured: people sign in with a token');
}

function baseOf({ oidc: { issuer }, server: { public_url } }: AccessSettings): URL | undefined {
  return issuer && public_url ? publicBase(public_url) : undefined;
}
