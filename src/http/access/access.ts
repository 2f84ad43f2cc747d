import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, Role } from '../ports.ts';
import { sendProblem } from '../problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls, once `requireRole` let them pass. */
    caller?: Caller;
    /** What the deciding credential came to, once it was looked up. */
    identity?: Identity;
  }
  interface FastifyContextConfig {
    /** A route of users or for admins: if a request carries both, the bearer decides. Elsewhere the x-api-key decides. */
    prefersBearer?: boolean;
    /** A route whose credential is the bearer, for the upstream to judge. */
    forwardsBearer?: boolean;
    /** A route that browsers open: the secret may also come as the password of HTTP Basic. */
    acceptsBasic?: boolean;
  }
}

/** What a request shows of its caller. */
export type Identity =
  /** `absent`: no credential. `malformed`, `unknown`: none that is anybody's. */
  | { kind: 'absent' | 'malformed' | 'unknown' }
  | { kind: 'known'; hash: Buffer; caller: Caller }
  /** The upstream judges it. `wasAccepted`: it took it from this address before. */
  | { kind: 'forwarded'; secret: string; hash: Buffer; wasAccepted: boolean }
  /** Not looked up: too many wrong credentials came from its address. */
  | { kind: 'locked'; retryAfterMs: number };

export type Authenticator = {
  /** Looks the deciding credential up, once per request. Throws what reading the ledger throws. */
  identify(request: FastifyRequest): Identity;
};

/** Malformed: not one credential, so that nobody could look it up. */
export type PresentedCredential = { kind: 'secret'; secret: string } | { kind: 'malformed' };

const MALFORMED = { kind: 'malformed' } as const;

/** Lets the bearer decide on every route of this instance that is registered later. */
export function preferBearer(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, prefersBearer: true };
  });
}

/**
 * The one credential that decides about a request; a second one is ignored, so that a request is one attempt. Undefined: the
 * request carries none. An empty header counts as absent, an Authorization of another scheme too.
 */
export function credentialOf(request: FastifyRequest): PresentedCredential | undefined {
  const { prefersBearer, forwardsBearer } = request.routeOptions.config ?? {};
  if (forwardsBearer) return bearerOf(request);
  return prefersBearer ? (bearerOf(request) ?? apiKeyOf(request)) : (apiKeyOf(request) ?? bearerOf(request));
}

function apiKeyOf(request: FastifyRequest): PresentedCredential | undefined {
  const [key = '', ...others] = request.raw.headersDistinct['x-api-key'] ?? [];
  if (others.length > 0) return MALFORMED;
  return key === '' ? undefined : { kind: 'secret', secret: key };
}

function bearerOf(request: FastifyRequest): PresentedCredential | undefined {
  // Node keeps the first of several, a proxy may have checked the last.
  const [authorization = '', ...others] = request.raw.headersDistinct.authorization ?? [];
  if (others.length > 0) return MALFORMED;
  const bearer = /^Bearer(?: (.*))?$/i.exec(authorization);
  if (!bearer) return passwordOf(request, authorization);
  const secret = (bearer[1] ?? '').trim();
  if (secret === '') return undefined;
  return /^[\x21-\x7e]+$/.test(secret) ? { kind: 'secret', secret } : MALFORMED;
}

function passwordOf(request: FastifyRequest, authorization: string): PresentedCredential | undefined {
  if (request.routeOptions.config?.acceptsBasic !== true) return undefined;
  const encoded = /^Basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const pair = Buffer.from(encoded, 'base64').toString();
  const password = pair.slice(pair.indexOf(':') + 1);
  return pair.includes(':') && password !== '' ? { kind: 'secret', secret: password } : MALFORMED;
}

/** Of the secrets that were shown in this turn of the event loop, mostly one: what is kept for longer could be stolen for longer. */
const hashes = new Map<string, Buffer>();

export function hashOf(secret: string): Buffer {
  if (hashes.size === 0) setImmediate(() => hashes.clear());
  const hash = hashes.get(secret) ?? sha256(secret);
  hashes.set(secret, hash);
  return hash;
}

/**
 * A request hook: lets pass who shows a known secret, as `x-api-key` or bearer, of one of these roles. Nobody learns from
 * the answer whether a secret was ever known. `challenge`: how it is to be shown, where that is not as a bearer.
 */
export function requireRole(authenticator: Authenticator, roles: readonly Role[], challenge?: string) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const identity = authenticator.identify(request);
    if (identity.kind === 'locked') {
      sendLocked(reply, identity.retryAfterMs);
    } else if (identity.kind !== 'known') {
      sendUnauthenticated(reply, 'send a valid credential as x-api-key or Authorization: Bearer', challenge);
    } else if (!roles.includes(identity.caller.role)) {
      sendProblem(reply, {
        status: 403,
        detail: `this needs the role ${roles.join(' or ')}, yours is ${identity.caller.role}`,
      });
    } else {
      request.caller = identity.caller;
      done();
    }
  };
}

/** The same answer to every credential that is not looked up, right or wrong. */
export function sendLocked(reply: FastifyReply, retryAfterMs: number): FastifyReply {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  reply.header('retry-after', seconds);
  const detail = `too many wrong credentials came from this address; try again in ${seconds} s`;
  return sendProblem(reply, { status: 429, detail });
}

export function sendUnauthenticated(
  reply: FastifyReply,
  detail: string,
  challenge = 'Bearer realm="dawatch"',
): FastifyReply {
  reply.header('www-authenticate', challenge);
  return sendProblem(reply, { status: 401, detail });
}

/** Secrets are looked up and kept by this hash only: they are random enough that a plain one can't be guessed back. */
export function sha256(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}
