import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Credentials } from './ports.ts';
import { sendProblem } from './problems.ts';

/** A request hook: lets pass who shows a known secret as `x-api-key` or bearer. */
export function requireCredential(credentials: Credentials) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const secret = secretOf(request);
    if (secret !== undefined && credentials(sha256(secret)) !== undefined) return undefined;
    reply.header('www-authenticate', 'Bearer realm="dawatch"');
    return sendProblem(reply, { status: 401, detail: 'send a service key as x-api-key or Authorization: Bearer' });
  };
}

/** Secrets are looked up and kept by this hash only: they are random enough that a plain one can't be guessed back. */
export function sha256(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

function secretOf(request: FastifyRequest): string | undefined {
  const key = request.headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1];
}
