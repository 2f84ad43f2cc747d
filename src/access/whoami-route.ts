import { z } from 'zod';
import { operations } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { type Caller, ROLES } from './access.ts';
import { roleSchema } from './credentials-routes.ts';
import type { PeopleStore } from './sessions.ts';
import type { Users } from './users.ts';

const usersBearerSchema = z
  .enum(['dawatch', 'upstream'])
  .describe(
    "The token that user lookups require: one of dawatch, or the upstream's own, which is forwarded",
  )
  .meta({ id: 'UsersBearer' });

const EXAMPLE = {
  role: 'service',
  name: 'billing',
  users_bearer: 'dawatch',
};

const whoamiSchema = z
  .object({
    role: roleSchema,
    name: z
      .string()
      .describe(
        'Name of the credential, as in the audit; of a person who signed in by OpenID Connect, the e-mail address or subject',
      ),
    users_bearer: usersBearerSchema,
  })
  .describe('The credential of this request')
  .meta({ id: 'Whoami', examples: [EXAMPLE] });

const OPERATIONS = operations('operations', {
  getWhoami: {
    summary: 'Get the role and name of the credential',
    querystring: z.strictObject({}),
    response: { 200: whoamiSchema },
  },
});

export function registerWhoami(
  app: TypedServer,
  { users, ledger }: { users: Users; ledger: { people: PeopleStore } },
): void {
  const config = { roles: ROLES };
  const options = { config, schema: OPERATIONS.getWhoami };
  app.get('/v1/whoami', options, async (request, reply) => {
    const { id, role, ...caller } = callerOf(request);
    const name = (id === null ? undefined : ledger.people.nameOf(id)) ?? caller.name;
    const usersBearer = users.forwards ? 'upstream' : 'dawatch';
    return reply.send({ role, name, users_bearer: usersBearer });
  });
}

function callerOf({ caller }: { caller?: Caller }): Caller {
  if (!caller) throw new Error('the route has no caller');
  return caller;
}
