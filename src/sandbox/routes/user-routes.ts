import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { SandboxContext } from '../context.ts';
import { sendFault } from './fault-responses.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/** Bearer tokens of a user and of an administrator. */
const USER_TOKEN = 'sandbox-user-token';
const ADMIN_TOKEN = 'sandbox-admin-token';

const userQuerySchema = z.object({ name: z.string(), email: z.string() });
// The upstream parses an unsigned integer. Number() alone would accept '' and '1e3'.
const listingQuerySchema = z.object({ limit: z.string().regex(/^\d+$/).transform(Number) });

/**
 * Adds GET /users/get_user, /user/get_user and /admin/get_all_users, and the paths that deployments
 * serve under /v1.
 */
export function addUserRoutes(app: FastifyInstance, context: SandboxContext): void {
  const { users } = context;
  for (const path of ['/users/get_user', '/user/get_user', '/v1/user/get_user'])
    app.get(path, guarded(sendUser));
  for (const path of ['/admin/get_all_users', '/v1/admin/get_all_users'])
    app.get(path, guarded(sendListing));

  function guarded(handler: Handler) {
    return async (request: FastifyRequest, reply: FastifyReply) => {
      const fault = context.faults.takeNext('users');
      await context.delay();
      return fault === undefined ? handler(request, reply) : sendFault(reply, fault);
    };
  }

  function sendUser(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (![USER_TOKEN, ADMIN_TOKEN].includes(tokenOf(request))) return unauthorized(reply);
    const query = userQuerySchema.safeParse(request.query);
    if (!query.success)
      return badRequest(reply, 'Query deserialize error: missing field `name` or `email`');
    const user = users.find(query.data.name, query.data.email);
    return user === undefined
      ? reply.code(500).send({ state: 'ERROR', error: 'Record not found' })
      : reply.send(user);
  }

  function sendListing(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (tokenOf(request) !== ADMIN_TOKEN) return unauthorized(reply);
    const query = listingQuerySchema.safeParse(request.query);
    if (!query.success)
      return badRequest(reply, 'Query deserialize error: missing or invalid field `limit`');
    return reply.send(users.list(query.data.limit));
  }
}

function tokenOf({ headers }: FastifyRequest): string {
  return /^Bearer (.+)$/i.exec(headers.authorization ?? '')?.[1] ?? '';
}

function unauthorized(reply: FastifyReply): FastifyReply {
  return reply.code(401).type('text/plain').send('Unauthorized');
}

function badRequest(reply: FastifyReply, reason: string): FastifyReply {
  return reply.code(400).type('text/plain').send(reason);
}
