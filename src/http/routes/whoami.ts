import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { type Authenticator, requireRole } from '../access/access.ts';
import { ROLES, type Users } from '../ports.ts';
import { problemResponse } from '../problems.ts';

const whoamiSchema = z
  .object({
    role: z.enum(ROLES).describe('service: submissions. user: looking up one user. admin: everything'),
    name: z.string().describe('Of the credential, as it stands in the audit'),
    users_bearer: z
      .enum(['dawatch', 'upstream'])
      .describe("Whose token lookups of users want: one of dawatch, or the upstream's own, which is forwarded"),
  })
  .describe('The credential that was shown')
  .meta({ examples: [{ role: 'service', name: 'billing', users_bearer: 'dawatch' }] });

/** What a client can find out about its own credential. */
export function registerWhoami(
  instance: FastifyInstance,
  { authenticator, users }: { authenticator: Authenticator; users: Users },
): void {
  instance.withTypeProvider<ZodTypeProvider>().get(
    '/v1/whoami',
    {
      onRequest: requireRole(authenticator, ROLES),
      schema: {
        operationId: 'getWhoami',
        summary: 'The role and the name of the credential that is shown',
        tags: ['operations'],
        querystring: z.strictObject({}),
        response: { 200: whoamiSchema, 400: problemResponse, 401: problemResponse },
      },
    },
    async ({ caller }, reply) => {
      if (!caller) throw new Error('requireRole let nobody pass');
      return reply.send({
        role: caller.role,
        name: caller.name,
        users_bearer: users.forwards ? 'upstream' : 'dawatch',
      });
    },
  );
}
