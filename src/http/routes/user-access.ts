import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler, onRequestHookHandler } from 'fastify';
import { z } from 'zod';
import { type Authenticator, requireRole, sendLocked, sendUnauthenticated } from '../access/access.ts';
import type { Audit, AuditEntry, Caller, Credentials, Role, Users } from '../ports.ts';

export type LookupAccess = {
  users: Users;
  audit: Audit;
  authenticator: Authenticator;
  credentials: Credentials;
  /** Whether a secret looks like one that dawatch makes, also one that it no longer knows. */
  isOwnToken: (secret: string) => boolean;
};

/** What `caller` is in the audit when the upstream knows who it is, and dawatch doesn't. */
const FORWARDED = 'forwarded';

/** An address as HTML forms take it: what an upstream once took as an address can be asked for. */
export const emailSchema = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email, 'is not an e-mail address')
  .describe("The user's e-mail address; in a query, + is written %2B");

/** The request hooks of a lookup. A refused caller who is known leaves a row in the audit as well. */
export function lookupAccess(
  deps: LookupAccess,
  route: { action: AuditEntry['action']; roles: readonly Role[] },
): (onRequestHookHandler | onRequestAsyncHookHandler)[] {
  if (deps.users.forwards) return [takeUpstreamToken(deps, route.action)];
  return [noteWrongRole(deps, route), requireRole(deps.authenticator, route.roles)];
}

/** Before the answer is sent: once it is, a row that can't be written would be a lookup that nobody knows of. */
function noteWrongRole(deps: LookupAccess, route: { action: AuditEntry['action']; roles: readonly Role[] }) {
  return async (request: FastifyRequest): Promise<void> => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind !== 'known' || route.roles.includes(identity.caller.role)) return;
    const { caller } = identity;
    const detail = `the role ${caller.role}`;
    deps.audit.add({
      caller: caller.name,
      credentialId: caller.id,
      address: request.clientAddress,
      action: route.action,
      outcome: 'refused',
      detail,
      email: emailIn(request.query),
    });
  };
}

/** Lets pass who shows a bearer that can be the upstream's. What has the form of dawatch's own tokens is refused by that alone. */
function takeUpstreamToken(deps: LookupAccess, action: AuditEntry['action']) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind === 'locked') return sendLocked(reply, identity.retryAfterMs);
    if (identity.kind !== 'forwarded')
      return sendUnauthenticated(reply, "send the upstream's own token as Authorization: Bearer; it is forwarded");
    if (!deps.isOwnToken(identity.secret)) return undefined;
    const caller = deps.credentials(identity.hash);
    if (caller) {
      deps.audit.add({
        caller: caller.name,
        credentialId: caller.id,
        address: request.clientAddress,
        action,
        outcome: 'refused',
        detail: 'a token of dawatch, which is not forwarded',
        email: emailIn(request.query),
      });
    }
    return sendUnauthenticated(
      reply,
      "this server forwards the upstream's own tokens for lookups of users; a token of dawatch is not sent upstream",
    );
  };
}

/** Who asks for a lookup, and the Authorization it is made with; undefined: the upstream's token of the settings. */
export function lookupCaller(
  deps: LookupAccess,
  request: FastifyRequest,
): { caller: Caller | { id: null; name: string }; authorization?: string; bearer?: string } {
  if (request.caller) return { caller: request.caller };
  const { identity } = request;
  if (identity?.kind !== 'forwarded') throw new Error('a lookup without a caller');
  const owner = deps.credentials(identity.hash);
  // A key of the settings in another form. The upstream is asked with a random token instead, so that neither the answer nor
  // its time tells the key from a wrong token.
  if (owner) return { caller: owner, authorization: `Bearer ${randomToken(identity.secret.length)}` };
  return {
    caller: { id: null, name: FORWARDED },
    authorization: request.headers.authorization ?? '',
    bearer: identity.secret,
  };
}

function randomToken(length: number): string {
  return randomBytes(length).toString('base64url').slice(0, length);
}

/** The address that was asked for, where the query is not checked yet. */
function emailIn(query: unknown): string | null {
  const parsed = z.object({ email: emailSchema }).safeParse(query);
  return parsed.success ? parsed.data.email : null;
}
