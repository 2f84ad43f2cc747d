import { z } from 'zod';
import { operations, problemResponses, sendProblem } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import {
  type Authenticator,
  actorOf,
  type Identity,
  ROLES,
  sendUnauthenticated,
  sha256,
} from './access.ts';
import {
  baseOf,
  isSameOrigin,
  isWithoutHttps,
  makeCookieValue,
  sessionCookieOf,
  setSessionCookie,
} from './cookies.ts';
import { oidcSignIn } from './oidc-route.ts';
import type { SessionStore, Sessions } from './sessions.ts';
import type { AccessSettings } from './settings.ts';

const sessionSchema = z
  .object({
    signed_in: z.boolean().describe('Whether this request has the cookie of an open session'),
    expires_at: z.iso
      .datetime()
      .nullable()
      .describe(
        'When the session ends at the latest; it ends earlier if it is not used; null: not signed in',
      ),
    oidc: z
      .object({
        url: z.url().describe('The page at which a browser begins the sign-in'),
      })
      .nullable()
      .describe('Sign-in at the provider of OpenID Connect; null: only with a credential'),
  })
  .describe('The session of the dashboard')
  .meta({
    id: 'Session',
    examples: [{ signed_in: true, expires_at: '2026-01-02T15:04:05.123Z', oidc: null }],
  });

const COOKIE =
  'The cookie is HttpOnly and authenticates only requests of pages of this server: Sec-Fetch-Site or Origin must name it, and ' +
  'a request that is neither GET nor HEAD needs `X-Requested-With: dawatch`.';

const OPERATIONS = operations('operations', {
  getSession: {
    summary: 'Get the session of the dashboard',
    description: 'Needs no credential.',
    security: [],
    querystring: z.strictObject({}),
    response: { 200: sessionSchema },
  },
  createSession: {
    summary: 'Sign in to the dashboard',
    description: `Exchanges the credential of the request for a session in a cookie, and ends the session that the request has. ${COOKIE} A session ends when its credential is revoked or expires, after two hours without a request, and twelve hours after the sign-in. Audited.`,
    querystring: z.strictObject({}),
    response: { 200: sessionSchema, ...problemResponses(507) },
  },
  deleteSession: {
    summary: 'Sign out of the dashboard',
    description:
      'Ends the session of the request and deletes its cookie. Without a session nothing changes. Audited.',
    querystring: z.strictObject({}),
    response: {
      204: z.null().describe('The session has ended, or there was none'),
      ...problemResponses(507),
    },
  },
});

export type SessionDeps = {
  authenticator: Authenticator;
  sessions: Sessions;
  ledger: { sessions: SessionStore };
  clock: { now(): number };
  config: AccessSettings;
};

export function registerSession(app: TypedServer, deps: SessionDeps): void {
  const { authenticator, sessions, ledger, clock, config } = deps;
  const publicUrl = config.server.public_url;
  const signedIn = { config: { roles: ROLES } };
  const bodyOf = (session: Buffer | undefined) => {
    const end = session && sessions.endOf(session);
    const expiresAt = end === undefined ? null : new Date(end).toISOString();
    return { signed_in: end !== undefined, expires_at: expiresAt, oidc: oidcSignIn(config) };
  };

  app.get('/v1/session', { schema: OPERATIONS.getSession }, async (request, reply) =>
    reply.send(bodyOf(sessionOf(authenticator.identify(request)))),
  );

  app.post(
    '/v1/session',
    { ...signedIn, schema: OPERATIONS.createSession },
    async (request, reply) => {
      const identity = authenticator.identify(request);
      if (identity.kind !== 'known' || identity.session)
        return sendUnauthenticated(
          reply,
          'send a credential as Authorization: Bearer; a session cannot begin another one',
        );
      if (!isSameOrigin(request, publicUrl))
        return sendProblem(reply, 403, 'only pages of this server can begin a session');
      if (isWithoutHttps(request, publicUrl))
        return sendProblem(reply, 403, `a session needs https: sign in at ${publicUrl}`);
      const [value, earlier] = [makeCookieValue(), sessionCookieOf(request, publicUrl)];
      const hash = sha256(value);
      const session = {
        hash,
        credentialHash: identity.hash,
        replaces: earlier ? sha256(earlier) : undefined,
      };
      ledger.sessions.begin(session, {
        actor: actorOf(request),
        detail: 'token',
        now: clock.now(),
      });
      setSessionCookie(reply, baseOf(request, publicUrl), value);
      return reply.send(bodyOf(hash));
    },
  );

  app.delete(
    '/v1/session',
    { ...signedIn, schema: OPERATIONS.deleteSession },
    async (request, reply) => {
      const session = sessionOf(authenticator.identify(request));
      if (session) {
        ledger.sessions.end(session, actorOf(request), clock.now());
        setSessionCookie(reply, baseOf(request, publicUrl));
      }
      return reply.code(204).send(null);
    },
  );
}

function sessionOf(identity: Identity): Buffer | undefined {
  return identity.kind === 'known' ? identity.session : undefined;
}
