import { hash } from 'node:crypto';
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preHandlerHookHandler,
} from 'fastify';
import { sendProblem } from '../http/problems.ts';
import { logOf } from '../http/typed-server.ts';
import type { Actor } from '../lib/actor.ts';
import type { Clock } from '../lib/clock.ts';

/**
 * service: submissions. user: lookups of single users. operator: reads submissions, webhooks,
 * deliveries, channels and mutes. admin: everything.
 */
export const ROLES = ['service', 'user', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** `id`: null for a configured credential. `name`: for the audit. */
export type Caller = { id: number | null; role: Role; name: string };

/** Returns the owner of a secret by its SHA-256; undefined if it is unknown, expired or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `authorize` when it accepts a request. */
    caller?: Caller;
    identity?: Identity;
  }
  interface FastifyContextConfig {
    /** Roles that may call the route besides admin. */
    roles?: readonly Role[];
    /** Replaces the check of the role. Calls `done`, or sends the refusal. */
    authorize?: (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
    /** If a request has both credentials, this route uses the bearer, others the x-api-key. */
    prefersBearer?: boolean;
    forwardsBearer?: boolean;
  }
}

export type Identity =
  /** cross_origin: the cookie of a session, which a page of another origin may have sent. */
  | { kind: 'absent' | 'malformed' | 'unknown' | 'cross_origin' }
  /** `session`: hash of the cookie, if a session authenticated the request. */
  | { kind: 'known'; hash: Buffer; caller: Caller; session?: Buffer }
  /** A bearer for the upstream, which decides whether it is valid. */
  | { kind: 'forwarded'; secret: string; hash: Buffer };

export type Authenticator = {
  /** Looks up the credential of a request, once per request. Throws LedgerError. */
  identify(request: FastifyRequest): Identity;
  /** Returns the caller of an earlier request; undefined: access has ended. Throws LedgerError. */
  currentCaller(identity: Identity): Caller | undefined;
};

export type PresentedCredential = { kind: 'secret'; secret: string } | { kind: 'malformed' };

const MALFORMED = { kind: 'malformed' } as const;

export function preferBearer(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, prefersBearer: true };
  });
}

/**
 * Returns the credential; undefined without one. A second one is ignored, so that each request is
 * one attempt.
 */
export function credentialOf(request: FastifyRequest): PresentedCredential | undefined {
  const { prefersBearer, forwardsBearer } = request.routeOptions.config ?? {};
  if (forwardsBearer) return bearerOf(request);
  return prefersBearer
    ? (bearerOf(request) ?? apiKeyOf(request))
    : (apiKeyOf(request) ?? bearerOf(request));
}

function apiKeyOf(request: FastifyRequest): PresentedCredential | undefined {
  const [key = '', ...others] = request.raw.headersDistinct['x-api-key'] ?? [];
  if (others.length > 0) return MALFORMED;
  return key === '' ? undefined : { kind: 'secret', secret: key };
}

function bearerOf(request: FastifyRequest): PresentedCredential | undefined {
  // Node would use the first of several headers, but a proxy may have checked the last.
  const [authorization = '', ...others] = request.raw.headersDistinct.authorization ?? [];
  if (others.length > 0) return MALFORMED;
  const bearer = /^Bearer(?: (.*))?$/i.exec(authorization);
  if (!bearer) return undefined;
  const secret = (bearer[1] ?? '').trim();
  if (secret === '') return undefined;
  return /^[\x21-\x7e]+$/.test(secret) ? { kind: 'secret', secret } : MALFORMED;
}

/** Makes every route registered later on this instance need no credential, unless it has roles. */
export function allowEveryone(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.config = { ...route.config, isOpen: true };
  });
}

export function authorize(authenticator: Authenticator): onRequestHookHandler {
  const check = requireRole(authenticator);
  return (request, reply, done) => {
    const { isOpen, roles, authorize: special = check } = request.routeOptions.config ?? {};
    if (request.is404 || (isOpen && !roles)) done();
    else special(request, reply, done);
  };
}

/** The response does not reveal whether a refused secret was ever valid. */
export function requireRole(authenticator: Authenticator) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const identity = authenticator.identify(request);
    if (identity.kind !== 'known') {
      sendUnauthenticated(reply, 'send a valid credential as x-api-key or Authorization: Bearer');
    } else if (!mayCall(request, identity.caller)) {
      const roles = [...(request.routeOptions.config?.roles ?? []), 'admin'].join(' or ');
      const detail = `this needs the role ${roles}; the credential has the role ${identity.caller.role}`;
      sendProblem(reply, 403, detail);
    } else {
      request.caller = identity.caller;
      done();
    }
  };
}

export function sendEnded(reply: FastifyReply): FastifyReply {
  return sendUnauthenticated(reply, 'the credential has expired or was revoked');
}

/** Access may have ended meanwhile, or a person may have signed in with another role. */
export function mayContinue(
  request: FastifyRequest,
  authenticator: Pick<Authenticator, 'currentCaller'>,
): boolean {
  const { identity } = request;
  const caller = identity && authenticator.currentCaller(identity);
  return caller !== undefined && mayCall(request, caller);
}

/**
 * Checks the credential again before the handler: it may have become invalid meanwhile. Applies to
 * later routes, and must follow every hook that lets requests wait.
 */
export function recheckBeforeHandlers(app: FastifyInstance, authenticator: Authenticator): void {
  const recheck: preHandlerHookHandler = (request, reply, done) => {
    const { caller, identity, method, routeOptions } = request;
    const isExpensive = routeOptions.config?.isExpensive;
    // Bodies of other requests are not read, so they have not waited since the first check.
    const mayHaveWaited = !['GET', 'HEAD'].includes(method) || isExpensive;
    if (!mayHaveWaited || !caller || !identity) return done();
    const current = authenticator.currentCaller(identity);
    if (!current || !mayCall(request, current)) return sendEnded(reply);
    request.caller = current;
    done();
  };
  app.addHook('onRoute', (route) => {
    route.preHandler = [route.preHandler ?? [], recheck].flat();
  });
}

/** The interval at which the live feed checks its readers. */
const CHECK_MS = 15_000;

/** `ended` aborts when the access of a held-open request has ended or cannot be determined. */
export function watchAccess(
  mayContinue: () => boolean,
  clock: { after: Clock['after'] },
): { ended: AbortSignal; stop: () => void } {
  const ended = new AbortController();
  const check = () => {
    if (isAllowed(mayContinue)) cancel = clock.after(CHECK_MS, check);
    else ended.abort();
  };
  let cancel = clock.after(CHECK_MS, check);
  return { ended: ended.signal, stop: () => cancel() };
}

/** Returns false if the ledger cannot be read; the request then gets a problem document. */
function isAllowed(mayContinue: () => boolean): boolean {
  try {
    return mayContinue();
  } catch {
    return false;
  }
}

export function mayCall(request: FastifyRequest, { role }: Caller): boolean {
  return role === 'admin' || request.routeOptions.config?.roles?.includes(role) === true;
}

/** Whether a route without authentication may show details; false if the ledger cannot be read. */
export function isOperator(request: FastifyRequest, authenticator: Authenticator): boolean {
  try {
    const identity = authenticator.identify(request);
    return identity.kind === 'known' && ['operator', 'admin'].includes(identity.caller.role);
  } catch (error) {
    logOf(request).error({ err: error }, 'http.failed');
    return false;
  }
}

/** Returns the caller of a request, for the audit. Must follow `authorize`. */
export function actorOf({ caller, clientAddress }: FastifyRequest): Actor {
  if (!caller) throw new Error('the route has no caller');
  return { name: caller.name, credentialId: caller.id, address: clientAddress };
}

export function sendUnauthenticated(reply: FastifyReply, detail: string): FastifyReply {
  reply.header('www-authenticate', 'Bearer realm="dawatch"');
  return sendProblem(reply, 401, detail);
}

/** A plain hash suffices for secrets, because tokens have 256 random bits. */
export function sha256(secret: string): Buffer {
  return hash('sha256', secret, 'buffer');
}
