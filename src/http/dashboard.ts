import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Asset } from './ports.ts';

/** The dashboard's files, from memory: a path is looked up among theirs, so that none can lead anywhere else. */
export function registerDashboard(app: FastifyInstance, assets: readonly Asset[]): void {
  const files = new Map(assets.map((asset) => [asset.path, { ...asset, etag: etagOf(asset.body) }]));

  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const file = files.get(URL.parse(request.url, 'http://server')?.pathname ?? '');
    if (!file) return reply.callNotFound();
    reply.headers({
      // Browsers keep it, and ask each time whether it is still the same: an upgrade is seen at once.
      'cache-control': 'no-cache',
      etag: file.etag,
      'content-type': file.contentType,
      ...(file.policy !== undefined && { 'content-security-policy': file.policy }),
    });
    if (isKnown(request.headers['if-none-match'], file.etag)) return reply.code(304).send();
    return reply.serializer((bytes: Buffer) => bytes as never).send(file.body);
  };
  for (const path of ['/', '/assets/*']) app.get(path, { schema: { hide: true } }, send);
}

/** A proxy that compresses makes a tag weak; it names the same file. */
function isKnown(ifNoneMatch: string | undefined, etag: string): boolean {
  return (ifNoneMatch ?? '').split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')));
}

function etagOf(body: Buffer): string {
  return `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
}
