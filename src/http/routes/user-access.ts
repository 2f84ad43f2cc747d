import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest, onRequestAsyncHookHandler, onRequestHookHandler } from 'fastify';
import { z } from 'zod';
import type { AuditAction } from '../../domain/audit/actions.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { type Authenticator, mayCall, requireScope, sendLocked, sendUnauthenticated } from '../access/access.ts';
import { isOwnToken } from '../access/credentials.ts';
import type { Caller, Credentials } from '../ports.ts';
import type { Users } from '../services.ts';

export type LookupAccess = {
  users: Users;
  ledger: Pick<Ledger, 'audit'>;
  clock: Pick<Clock, 'now'>;
  authenticator: Authenticator;
  credentials: Credentials;
};

/** The `caller` in the audit of a token that only the upstream knows. */
const FORWARDED = 'forwarded';

/** An address as HTML forms accept it, because upstreams accept no less. */
export const emailSchema = z
  .string()
  .max(254)
  .regex(z.regexes.html5Email, 'is not an e-mail address')
  .describe("The user's e-mail address; in a query, + is written %2B");

/** Returns the request hooks of a lookup. Refusals of known callers are audited as well. */
export function lookupAccess(
  deps: LookupAccess,
  action: AuditAction,
): (onRequestHookHandler | onRequestAsyncHookHandler)[] {
  if (deps.users.forwards) return [requireUpstreamToken(deps, action)];
  return [auditMissingScope(deps, action), requireScope(deps.authenticator)];
}

/** Audits a refusal. Runs before the response is sent, so that a failed write prevents the response. */
function auditRefusal(
  deps: LookupAccess,
  request: FastifyRequest,
  refusal: { caller: Caller; action: AuditAction; detail: string },
): void {
  const { caller, action, detail } = refusal;
  const actor = { name: caller.name, credentialId: caller.id, address: request.clientAddress };
  const email = emailIn(request.query);
  deps.ledger.audit.append(actor, deps.clock.now(), { action, result: 'refused', detail, email });
}

function auditMissingScope(deps: LookupAccess, action: AuditAction) {
  return async (request: FastifyRequest): Promise<void> => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind !== 'known' || mayCall(request, identity.caller)) return;
    const { caller } = identity;
    auditRefusal(deps, request, {
      caller,
      action,
      detail: caller.role === null ? 'its scopes' : `the role ${caller.role}`,
    });
  };
}

/** Accepts a bearer that can be one of the upstream. A token with the form of dawatch's own is refused and never forwarded. */
function requireUpstreamToken(deps: LookupAccess, action: AuditAction) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const identity = deps.authenticator.identify(request);
    if (identity.kind === 'locked') return sendLocked(reply, identity.retryAfterMs);
    if (identity.kind !== 'forwarded')
      return sendUnauthenticated(reply, "send the upstream's own token as Authorization: Bearer; it is forwarded");
    if (!isOwnToken(identity.secret)) return undefined;
    const caller = deps.credentials(identity.hash);
    if (caller) auditRefusal(deps, request, { caller, action, detail: 'a token of dawatch, which is not forwarded' });
    return sendUnauthenticated(
      reply,
      "user lookups require the upstream's own token; a token of dawatch is not forwarded",
    );
  };
}

/** Returns the caller and the Authorization for the upstream; undefined uses the configured upstream token. */
export function lookupCaller(
  deps: LookupAccess,
  request: FastifyRequest,
): { caller: Caller | { id: null; name: string }; authorization?: string; bearer?: string } {
  if (request.caller) return { caller: request.caller };
  const { identity } = request;
  if (identity?.kind !== 'forwarded') throw new Error('a lookup without a caller');
  const owner = deps.credentials(identity.hash);
  // A configured key without the form of a token. A random token is sent to the upstream instead, so that neither the response
  // nor its time distinguishes the key from a wrong token.
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

/** Returns the requested address from a query that is not validated yet. */
function emailIn(query: unknown): string | null {
  const parsed = z.object({ email: emailSchema }).safeParse(query);
  return parsed.success ? parsed.data.email : null;
}
