import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** A response body, built and compressed once. Every client gets the same bytes. */
export type StoredResponse = {
  body: Buffer;
  etag: string;
  headers: Readonly<Record<string, string>>;
  /** Set by the first request that accepts it. */
  gzipped?: Promise<Buffer>;
};

const compress = promisify(gzip);
/** `gzip` in Accept-Encoding, unless its weight is 0. */
const ACCEPTS_GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i;

export function storedResponse(
  body: Buffer | string,
  headers: Record<string, string>,
): StoredResponse {
  const bytes = Buffer.from(body);
  return { body: bytes, etag: etagOf(bytes), headers };
}

/**
 * Sends the body, or 304 to a client that has it. Browsers revalidate every time, so an upgrade is
 * visible at once.
 */
export async function sendStoredResponse(
  request: FastifyRequest,
  reply: FastifyReply,
  stored: StoredResponse,
): Promise<FastifyReply> {
  const isGzip = ACCEPTS_GZIP.test(String(request.headers['accept-encoding'] ?? ''));
  // The compressed body consists of other bytes, so its strong entity tag differs.
  const etag = isGzip ? stored.etag.replace(/"$/, '-gzip"') : stored.etag;
  const vary = [reply.getHeader('vary'), 'Accept-Encoding'].filter(Boolean).join(', ');
  reply.headers({ 'cache-control': 'no-cache', vary, etag, ...stored.headers });
  if (isKnown(request.headers['if-none-match'], etag)) return reply.code(304).send();
  if (!isGzip) return reply.send(stored.body);
  stored.gzipped ??= compress(stored.body);
  const body = await stored.gzipped;
  return reply.header('content-encoding', 'gzip').send(body);
}

/**
 * Returns the path as the client sent it, without a scheme and host that a proxy may have added.
 * Nothing is decoded and "." and ".." are not resolved, so that each file has exactly one path.
 */
export function sentPath({ url }: FastifyRequest): string {
  const [address = ''] = url.split(/[?#]/, 1);
  return address.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '');
}

/**
 * Serves files from memory. A path is only looked up in the map, so it cannot reach another file.
 */
export function serveFiles(
  app: FastifyInstance,
  urls: readonly string[],
  files: () => ReadonlyMap<string, StoredResponse> | Promise<ReadonlyMap<string, StoredResponse>>,
): void {
  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const file = (await files()).get(sentPath(request));
    return file ? sendStoredResponse(request, reply, file) : reply.callNotFound();
  };
  for (const url of urls) app.get(url, { config: { isOpen: true }, schema: { hide: true } }, send);
}

/** Returns the strong entity tag of a body. */
function etagOf(body: Buffer | string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;
}

/** Returns whether `If-None-Match` contains the entity tag, as RFC 9110 compares it. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}
