import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler, onRequestHookHandler } from 'fastify';
import { z } from 'zod';
import { identify, identifyBearer, requireRole, sendUnauthenticated } from './access.ts';
import type { Audit, AuditEntry, Credentials, Role, Users } from './ports.ts';

export type LookupAccess = {
  users: Users;
  audit: Audit;
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
  .regex(z.regexes.html5Email, 'not an e-mail address')
  .describe("The user's e-mail address; in a query, + is written %2B");

/** The request hooks of a lookup. A refused caller who is known leaves a row in the audit as well. */
export function lookupAccess(
  deps: LookupAccess,
  route: { action: AuditEntry['action']; roles: readonly Role[] },
): (onRequestHookHandler | onRequestAsyncHookHandler)[] {
  if (deps.users.forwards) return [takeUpstreamToken(deps, route.action)];
  return [noteWrongRole(deps, route), requireRole(deps.credentials, route.roles)];
}

export function callerOf(request: FastifyRequest): string {
  return request.caller?.name ?? FORWARDED;
}

/** Before the answer is sent: once it is, a row that can't be written would be a lookup that nobody knows of. */
function noteWrongRole(deps: LookupAccess, route: { action: AuditEntry['action']; roles: readonly Role[] }) {
  return async (request: FastifyRequest): Promise<void> => {
    const caller = identify(request, deps.credentials)?.caller;
    if (!caller || route.roles.includes(caller.role)) return;
    const detail = `the role ${caller.role}`;
    deps.audit.add({
      caller: caller.name,
      credentialId: caller.id,
      action: route.action,
      outcome: 'refused',
      detail,
      email: emailIn(request.query),
    });
  };
}

/** Lets pass who shows a bearer that can be the upstream's. One of dawatch's own must not leave this house. */
function takeUpstreamToken(deps: LookupAccess, action: AuditEntry['action']) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const secret = /^Bearer +([\x21-\x7e]+) *$/i.exec(request.headers.authorization ?? '')?.[1];
    if (secret === undefined)
      return sendUnauthenticated(reply, "send the upstream's own token as Authorization: Bearer; it is forwarded");
    const caller = identifyBearer(request, deps.credentials)?.caller;
    if (caller) {
      const { name, id: credentialId } = caller;
      const detail = 'a token of dawatch, which is not forwarded';
      deps.audit.add({ caller: name, credentialId, action, outcome: 'refused', detail, email: emailIn(request.query) });
    }
    if (caller || deps.isOwnToken(secret))
      return sendUnauthenticated(
        reply,
        "this server forwards the upstream's own tokens for lookups of users; a token of dawatch is not sent upstream",
      );
    return undefined;
  };
}

/** The address that was asked for, where the query is not checked yet. */
function emailIn(query: unknown): string | null {
  const parsed = z.object({ email: emailSchema }).safeParse(query);
  return parsed.success ? parsed.data.email : null;
}
