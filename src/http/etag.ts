import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Returns the strong entity tag of a body. */
export function etagOf(body: Buffer | string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
}

/**
 * Sets the entity tag of a body and returns what the handler returns: its JSON, or undefined to a
 * client that has it, with 304. A handler that returns the reply instead makes Fastify watch for
 * the end of the response.
 */
export function withEtag(
  request: FastifyRequest,
  reply: FastifyReply,
  body: unknown,
): string | undefined {
  const text = JSON.stringify(body);
  const etag = etagOf(text);
  reply.header('etag', etag);
  if (isKnown(request.headers['if-none-match'], etag)) {
    reply.code(304);
    return undefined;
  }
  reply.header('content-type', 'application/json; charset=utf-8');
  return text;
}

/** Returns whether `If-None-Match` contains the entity tag, as RFC 9110 compares it. */
export function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
