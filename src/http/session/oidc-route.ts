import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Config } from '../../config/schema.ts';
import type { Clock } from '../../domain/clock.ts';
import { LedgerError } from '../../ledger/file/errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { sha256 } from '../access/access.ts';
import type { TypedServer } from '../ports.ts';
import { sendProblem, setRetryAfter } from '../problems.ts';
import { logOf } from '../request-log.ts';
import { personOf, roleOf } from './claims.ts';
import {
  browserCookie,
  browserCookieOf,
  makeCookieValue,
  publicBase,
  sessionCookie,
  sessionCookieOf,
} from './cookies.ts';
import { type PendingSignIn, PendingSignIns, SIGN_IN_S } from './pending-sign-ins.ts';
import { type Provider, ProviderError } from './provider.ts';

const PATH = 'v1/session/oidc';

/** The reasons why a person could not sign in. The dashboard has a message for each. */
type Failure = ProviderError['reason'] | SignInError['reason'] | 'ledger';

export type OidcDeps = {
  settings: () => Pick<Config, 'oidc' | 'sessions'>;
  publicUrl: () => string | undefined;
  ledger: Pick<Ledger, 'people'>;
  clock: Pick<Clock, 'now'>;
  provider: Provider;
  /** Receives the address of each refused sign-in. */
  onRefused: (address: string) => void;
};

/** The name of the provider, and where a sign-in begins; null if people can only sign in with tokens. */
export function oidcSignIn({
  settings,
  publicUrl,
}: Pick<OidcDeps, 'publicUrl'> & { settings: () => Pick<Config, 'oidc'> }) {
  const { issuer, name } = settings().oidc;
  const base = baseOf(publicUrl());
  return issuer === undefined || base === undefined ? null : { name, url: new URL(PATH, base).href };
}

/** Registers the two pages of a sign-in at a provider. Both redirect: to the provider, and back to the dashboard. */
export function registerOidc(app: TypedServer, deps: OidcDeps): void {
  const { settings, publicUrl, ledger, clock, provider } = deps;
  const pending = new PendingSignIns();
  const begin = z.strictObject({ to: z.string().max(1_000).optional() });

  app.get(
    `/${PATH}`,
    { exposeHeadRoute: false, schema: { hide: true, querystring: begin } },
    async (request, reply) => {
      const base = baseOf(publicUrl());
      if (!base || !oidcSignIn(deps)) return sendNotConfigured(reply);
      const retryAfterMs = pending.admit(request.clientAddress);
      if (retryAfterMs !== undefined) {
        setRetryAfter(reply, retryAfterMs);
        return sendProblem(reply, { status: 429, detail: 'too many sign-ins were begun from this address' });
      }
      const state = makeCookieValue();
      try {
        const { url, ...checks } = await provider.begin(new URL(`${PATH}/callback`, base).href, state);
        // Several tabs can sign in at the same time.
        const browser = browserCookieOf(request) ?? makeCookieValue();
        const { to = '' } = request.query;
        pending.begin(state, { ...checks, browser, to });
        return reply.header('set-cookie', browserCookie(base, browser, SIGN_IN_S)).redirect(url.href);
      } catch (error) {
        return fail(request, reply, base, error);
      }
    },
  );

  app.get(`/${PATH}/callback`, { exposeHeadRoute: false, schema: { hide: true } }, async (request, reply) => {
    const base = baseOf(publicUrl());
    if (!base || !oidcSignIn(deps)) return sendNotConfigured(reply);
    const response = new URL(`${PATH}/callback`, base);
    response.search = request.url.replace(/^[^?]*/, '');
    const state = response.searchParams.get('state') ?? '';
    const signIn = pending.take(state, browserCookieOf(request) ?? '');
    if (!signIn) return fail(request, reply, base, new SignInError('state'));
    try {
      const claims = await provider.complete(response, { ...signIn, state });
      const { oidc, sessions } = settings();
      const [person, role] = [personOf(claims), roleOf(claims, oidc)];
      if (role === undefined) {
        ledger.people.endSessions(person);
        throw new SignInError('no_role');
      }
      const [value, earlier] = [makeCookieValue(), sessionCookieOf(request)];
      const session = {
        hash: sha256(value),
        maxAgeMs: sessions.max_s * 1_000,
        replaces: earlier ? sha256(earlier) : undefined,
      };
      const from = { address: request.clientAddress, now: clock.now() };
      if (ledger.people.signIn({ ...person, role }, session, from) === 'revoked') throw new SignInError('revoked');
      return reply.header('set-cookie', sessionCookie(base, value)).redirect(pageOf(base, signIn));
    } catch (error) {
      return fail(request, reply, base, error);
    }
  });

  /** Redirects to the dashboard, which explains the failure. The log has the cause. */
  function fail(request: FastifyRequest, reply: FastifyReply, base: URL, error: unknown): FastifyReply {
    const { reason, detail, err } = explain(error);
    if (reason !== 'unavailable' && reason !== 'ledger') deps.onRefused(request.clientAddress);
    const fields = { reason, address: request.clientAddress, ...(detail && { detail }), ...(err && { err }) };
    logOf(request).warn(fields, 'auth.sign_in_failed');
    return reply.redirect(`${base.href}#/sign-in?failed=${reason}`);
  }
}

class SignInError extends Error {
  readonly reason: 'state' | 'no_role' | 'revoked';

  constructor(reason: SignInError['reason']) {
    super(reason);
    this.reason = reason;
  }
}

function explain(error: unknown): { reason: Failure; detail?: string; err?: Error } {
  if (error instanceof SignInError) return { reason: error.reason };
  if (error instanceof ProviderError) return { reason: error.reason, detail: error.detail };
  if (error instanceof LedgerError) return { reason: 'ledger', err: error };
  throw error;
}

/** The page of the dashboard at which the sign-in began. */
function pageOf({ href }: URL, { to }: Pick<PendingSignIn, 'to'>): string {
  return `${href}#/${escapePage(to)}`;
}

/** Encodes characters that would end the fragment or the header. Keeps existing escapes. */
function escapePage(page: string): string {
  return page.replace(/[^\w\-.~!$&'()*+,;=:@/?%]/gu, encodeURIComponent);
}

function sendNotConfigured(reply: FastifyReply): FastifyReply {
  return sendProblem(reply, { status: 404, detail: 'no provider is configured: people sign in with a token' });
}

function baseOf(publicUrl: string | undefined): URL | undefined {
  return publicUrl === undefined ? undefined : publicBase(publicUrl);
}
