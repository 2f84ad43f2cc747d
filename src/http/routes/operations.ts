import { z } from 'zod';
import { type Authenticator, requireRole } from '../access/access.ts';
import { ROLES, type TypedServer } from '../ports.ts';
import { operations } from '../problems.ts';
import type { Users } from '../services.ts';

const whoamiSchema = z
  .object({
    role: z.enum(ROLES).describe('service: submissions; user: lookups of single users; admin: everything'),
    name: z.string().describe('Name of the credential, as in the audit'),
    users_bearer: z
      .enum(['dawatch', 'upstream'])
      .describe("The token that user lookups require: one of dawatch, or the upstream's own, which is forwarded"),
  })
  .describe('The credential of this request')
  .meta({ examples: [{ role: 'service', name: 'billing', users_bearer: 'dawatch' }] });

const OPERATIONS = operations('operations', {
  getWhoami: {
    summary: 'Get the role and name of the credential',
    querystring: z.strictObject({}),
    response: { 200: whoamiSchema },
  },
});

export function registerWhoami(
  app: TypedServer,
  { authenticator, users }: { authenticator: Authenticator; users: Users },
): void {
  const schema = OPERATIONS.getWhoami;
  app.get('/v1/whoami', { onRequest: requireRole(authenticator, ROLES), schema }, async ({ caller }, reply) => {
    if (!caller) throw new Error('requireRole sets the caller');
    const { role, name } = caller;
    return reply.send({ role, name, users_bearer: users.forwards ? 'upstream' : 'dawatch' });
  });
}
