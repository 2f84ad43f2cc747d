import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** A response body that is built once and sent to every client from the same bytes. */
export type StoredResponse = { body: Buffer; etag: string; headers: Readonly<Record<string, string>> };

export function storedResponse(body: Buffer | string, headers: Record<string, string>): StoredResponse {
  const bytes = Buffer.from(body);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { body: bytes, etag, headers };
}

/** Responds 304 to a client that has it already. Browsers ask each time, so that an upgrade is seen at once. */
export function sendStoredResponse(request: FastifyRequest, reply: FastifyReply, answer: StoredResponse): FastifyReply {
  reply.headers({ 'cache-control': 'no-cache', etag: answer.etag, ...answer.headers });
  if (isKnown(request.headers['if-none-match'], answer.etag)) return reply.code(304).send();
  return reply.send(answer.body);
}

/**
 * The path as the client sent it: nothing is decoded and no "." or ".." is resolved, so that a stored answer is found by
 * one spelling only. A proxy may send a whole address.
 */
export function sentPath({ url }: FastifyRequest): string {
  const [address = ''] = url.split(/[?#]/, 1);
  return address.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}

function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
