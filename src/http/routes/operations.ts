import { z } from 'zod';
import { type Authenticator, actorOf, requireRole } from '../access/access.ts';
import { type Caller, type Reload, ROLES, type TypedServer } from '../ports.ts';
import { operations, problemResponses, sendProblem } from '../problems.ts';
import type { Users } from '../services.ts';

const roleSchema = z
  .enum(ROLES)
  .describe('service: submissions; user: lookups of single users; admin: everything')
  .meta({ id: 'Role' });

const usersBearer = z
  .enum(['dawatch', 'upstream'])
  .describe("The token that user lookups require: one of dawatch, or the upstream's own, which is forwarded")
  .meta({ id: 'UsersBearer' });

const whoamiSchema = z
  .object({
    role: roleSchema,
    name: z.string().describe('Name of the credential, as in the audit'),
    users_bearer: usersBearer,
  })
  .describe('The credential of this request')
  .meta({ id: 'Whoami', examples: [{ role: 'service', name: 'billing', users_bearer: 'dawatch' }] });

const reloadSchema = z
  .object({ changes: z.array(z.string()).describe('Names of the settings that changed, sorted; empty: none') })
  .describe('The settings in the files are in force')
  .meta({ id: 'ReloadedSettings', examples: [{ changes: ['auth.api_key', 'upstreams.default.budget.requests'] }] });

const OPERATIONS = operations('operations', {
  getWhoami: {
    summary: 'Get the role and name of the credential',
    querystring: z.strictObject({}),
    response: { 200: whoamiSchema },
  },
  reloadSettings: {
    summary: 'Reload the settings',
    description:
      'Reads the settings file and the secret files again, like SIGHUP, and applies keys, budgets, channels, routes and the log level. All or nothing: with 409, nothing was applied, because the settings are invalid or a change needs a restart; `detail` names the settings. Audited.',
    querystring: z.strictObject({}),
    response: { 200: reloadSchema, ...problemResponses(409, 507) },
  },
});

export function registerWhoami(
  app: TypedServer,
  { authenticator, users }: { authenticator: Authenticator; users: Users },
): void {
  const schema = OPERATIONS.getWhoami;
  app.get('/v1/whoami', { onRequest: requireRole(authenticator, ROLES), schema }, async (request, reply) => {
    const { role, name } = callerOf(request);
    return reply.send({ role, name, users_bearer: users.forwards ? 'upstream' : 'dawatch' });
  });
}

export function registerReload(app: TypedServer, { reload }: { reload: Reload }): void {
  app.post('/v1/reload', { schema: OPERATIONS.reloadSettings }, async (request, reply) => {
    const result = await reload(actorOf(request));
    if (result.kind === 'reloaded') return reply.send({ changes: result.changes });
    return sendProblem(reply, { status: 409, detail: `nothing was applied: ${result.reason}` });
  });
}

function callerOf({ caller }: { caller?: Caller }): Caller {
  if (!caller) throw new Error('requireRole sets the caller');
  return caller;
}
