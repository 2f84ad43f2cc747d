import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, Credentials, Role } from './ports.ts';
import { sendProblem } from './problems.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls, once `requireRole` let them pass. */
    caller?: Caller;
    identity?: Identity;
    bearer?: Identity;
  }
  interface FastifyContextConfig {
    /** A route whose credential is the bearer, for the upstream to judge. */
    forwardsBearer?: boolean;
    /** A route that browsers open: the secret may also come as the password of HTTP Basic. */
    acceptsBasic?: boolean;
  }
}

type Identity = { hash: Buffer; caller: Caller | undefined };

/** Whose secret the request shows, looked up once per request; undefined: it shows none. */
export function identify(request: FastifyRequest, credentials: Credentials): Identity | undefined {
  const key = request.headers['x-api-key'];
  if (typeof key !== 'string' || key === '') return identifyBearer(request, credentials);
  request.identity ??= identityOf(key, credentials);
  return request.identity;
}

/** The same of its bearer, whatever else it shows. */
export function identifyBearer(request: FastifyRequest, credentials: Credentials): Identity | undefined {
  const authorization = request.headers.authorization ?? '';
  const secret = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? passwordOf(request, authorization);
  if (secret === undefined) return undefined;
  request.bearer ??= identityOf(secret, credentials);
  return request.bearer;
}

function passwordOf(request: FastifyRequest, authorization: string): string | undefined {
  if (request.routeOptions.config?.acceptsBasic !== true) return undefined;
  const encoded = /^Basic +(\S+) *$/i.exec(authorization)?.[1];
  const pair = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString();
  return pair.includes(':') ? pair.slice(pair.indexOf(':') + 1) : undefined;
}

/** Of the secrets that were shown in this turn of the event loop, mostly one: what is kept for longer could be stolen for longer. */
const hashes = new Map<string, Buffer>();

function identityOf(secret: string, credentials: Credentials): Identity {
  if (hashes.size === 0) setImmediate(() => hashes.clear());
  const hash = hashes.get(secret) ?? sha256(secret);
  hashes.set(secret, hash);
  return { hash, caller: credentials(hash) };
}

/**
 * A request hook: lets pass who shows a known secret, as `x-api-key` or bearer, of one of these roles. Nobody learns from
 * the answer whether a secret was ever known. `challenge`: how it is to be shown, where that is not as a bearer.
 */
export function requireRole(credentials: Credentials, roles: readonly Role[], challenge?: string) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const caller = identify(request, credentials)?.caller;
    if (!caller) {
      sendUnauthenticated(reply, 'send a valid credential as x-api-key or Authorization: Bearer', challenge);
    } else if (!roles.includes(caller.role)) {
      sendProblem(reply, {
        status: 403,
        detail: `this needs the role ${roles.join(' or ')}, yours is ${caller.role}`,
      });
    } else {
      request.caller = caller;
      done();
    }
  };
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
