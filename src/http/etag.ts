import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Returns the strong entity tag of a body. */
export function etagOf(body: Buffer | string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
}

/** Sends JSON with its entity tag, or 304 to a client that has it. */
export function sendWithEtag(request: FastifyRequest, reply: FastifyReply, body: unknown): FastifyReply {
  const text = JSON.stringify(body);
  const etag = etagOf(text);
  reply.header('etag', etag);
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  return reply.type('application/json; charset=utf-8').send(text);
}

/** Returns whether `If-None-Match` contains the entity tag, as RFC 9110 compares it. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
