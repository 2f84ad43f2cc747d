import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { SandboxContext } from '../context.ts';
import type { SandboxOptions } from '../options.ts';
import type { UserRecord } from '../users.ts';
import { sendFault } from './fault-responses.ts';

type Principal = 'user' | 'admin';
type Handler = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

const USER_TOKEN = 'sandbox-user-token';

const userQuerySchema = z.object({ name: z.string(), email: z.string() });
// The upstream parses an unsigned integer. Number() alone would accept '' and '1e3'.
const listingQuerySchema = z.object({ limit: z.string().regex(/^\d+$/).transform(Number) });

/**
 * Adds GET /users/get_user, /user/get_user and /admin/get_all_users, and the paths that deployments
 * serve under /v1.
 */
export function addUserRoutes(app: FastifyInstance, context: SandboxContext): void {
  const { options, users } = context;
  for (const path of ['/users/get_user', '/user/get_user', '/v1/user/get_user'])
    app.get(path, guarded(sendUser));
  for (const path of ['/admin/get_all_users', '/v1/admin/get_all_users'])
    app.get(path, guarded(sendListing));

  function guarded(handler: Handler) {
    return async (request: FastifyRequest, reply: FastifyReply) => {
      const fault = context.faults.takeNext('users');
      await context.delay();
      return fault === undefined
        ? handler(request, reply)
        : sendFault(reply, fault, context.redirectTo());
    };
  }

  function sendUser(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const principal = principalOf(request, options);
    if (principal === undefined) return unauthorized(reply);
    if (options.userParams === 'ignored')
      return reply.send(userBody(users.own(principal), options));
    const query = userQuerySchema.safeParse(request.query);
    if (!query.success)
      return badRequest(reply, 'Query deserialize error: missing field `name` or `email`');
    const user = users.find(query.data.name, query.data.email);
    return user === undefined ? unknownUser(reply, options) : reply.send(userBody(user, options));
  }

  function sendListing(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (principalOf(request, options) !== 'admin') return unauthorized(reply);
    const query = listingQuerySchema.safeParse(request.query);
    if (!query.success)
      return badRequest(reply, 'Query deserialize error: missing or invalid field `limit`');
    return reply.send(listingBody(users.list(query.data.limit), options.listingForm));
  }
}

function userBody(user: UserRecord, { wrapped }: SandboxOptions): object {
  return wrapped ? { state: 'SUCCESS', message: 'User retrieved successfully', data: user } : user;
}

function listingBody(users: readonly UserRecord[], form: SandboxOptions['listingForm']): object {
  const bodies = {
    array: users,
    results: { results: users },
    resultsOk: { results: { Ok: users } },
    data: { state: 'SUCCESS', data: users },
    dataOk: { data: { Ok: users } },
    dataErr: { data: { Err: 'Database connection error' } },
  } satisfies Record<typeof form, object>;
  return bodies[form];
}

function principalOf(
  request: FastifyRequest,
  { adminToken }: SandboxOptions,
): Principal | undefined {
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  if (token === adminToken) return 'admin';
  return token === USER_TOKEN ? 'user' : undefined;
}

function unauthorized(reply: FastifyReply): FastifyReply {
  return reply.code(401).type('text/plain').send('Unauthorized');
}

function badRequest(reply: FastifyReply, reason: string): FastifyReply {
  return reply.code(400).type('text/plain').send(reason);
}

function unknownUser(reply: FastifyReply, { unknownStatus }: SandboxOptions): FastifyReply {
  return unknownStatus === 404
    ? reply.code(404).type('text/plain').send('User not found')
    : reply.code(500).send({ state: 'ERROR', error: 'Record not found' });
}
