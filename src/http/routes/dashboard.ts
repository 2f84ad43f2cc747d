import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Asset } from '../ports.ts';
import { sendStoredResponse, sentPath, storedResponse } from '../stored-response.ts';

/** Serves the files of the dashboard from memory. A path is looked up among theirs, so it cannot lead to another file. */
export function registerDashboard(app: FastifyInstance, assets: readonly Asset[]): void {
  const files = new Map(
    assets.map(({ path, body, contentType, policy }) => {
      const headers = {
        'content-type': contentType,
        ...(policy !== undefined && { 'content-security-policy': policy }),
      };
      return [path, storedResponse(body, headers)];
    }),
  );

  const send = async (request: FastifyRequest, reply: FastifyReply) => {
    const file = files.get(sentPath(request));
    return file ? sendStoredResponse(request, reply, file) : reply.callNotFound();
  };
  for (const path of ['/', '/assets/*']) app.get(path, { schema: { hide: true } }, send);
}
