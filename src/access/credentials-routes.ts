import { z } from 'zod';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import {
  nextCursor,
  nextCursorSchema,
  pageOf,
  pageParameters,
  rowId,
  type TypedServer,
  timeSchema,
} from '../http/typed-server.ts';
import { type Clock, iso, isoOrNull } from '../lib/clock.ts';
import { actorOf, type Caller, ROLES } from './access.ts';
import {
  CREDENTIAL_STATES,
  type CredentialLedger,
  type CredentialRecord,
  createCredential,
  credentialState,
  MAX_CREDENTIALS,
  nameProblem,
  revokeCredential,
} from './credentials-store.ts';
import type { PeopleStore } from './sessions.ts';
import type { Users } from './users.ts';

const roleSchema = z
  .enum(ROLES)
  .describe(
    'service: submissions; user: lookups of single users; operator: reads submissions, webhooks, deliveries, channels and mutes; admin: everything',
  )
  .meta({ id: 'Role' });

const newCredentialSchema = z
  .strictObject({
    name: z
      .string()
      .superRefine((name, context) => {
        const message = nameProblem(name);
        if (message !== undefined) context.addIssue({ code: 'custom', message });
      })
      .describe('Name of the client, 1 to 64 characters of ASCII; appears in the audit'),
    role: roleSchema,
    expires_at: z.iso
      .datetime({ offset: true, error: 'must be a time like 2027-01-02T03:04:05Z' })
      .nullable()
      .default(null)
      .describe('Time from which the credential is refused; null: never'),
  })
  .meta({
    id: 'NewCredential',
    examples: [{ name: 'billing', role: 'service', expires_at: '2027-01-02T03:04:05Z' }],
  });

const EXAMPLE = {
  id: 3,
  name: 'billing',
  person: null,
  role: 'service',
  state: 'valid',
  created_at: '2026-01-02T03:04:05.123Z',
  expires_at: null,
  last_used_at: '2026-01-02T03:05:00.000Z',
  revoked_at: null,
} as const;

const credentialSchema = z
  .object({
    id: z.int(),
    name: z.string(),
    person: z
      .string()
      .nullable()
      .describe(
        'E-mail address or subject of the person who signs in with this credential by OpenID Connect; null for the token of a client',
      ),
    role: roleSchema,
    state: z.enum(CREDENTIAL_STATES).meta({ id: 'CredentialState' }),
    created_at: timeSchema,
    expires_at: timeSchema.nullable(),
    last_used_at: timeSchema
      .nullable()
      .describe('Time of its last use, to the minute; null: not used'),
    revoked_at: timeSchema.nullable(),
  })
  .describe('A credential, without its secret')
  .meta({ id: 'Credential', examples: [EXAMPLE] });

const credentialWithSecretSchema = credentialSchema
  .extend({ secret: z.string().describe('Returned only here; only its hash is stored') })
  .describe('A credential with its new secret')
  .meta({
    id: 'CredentialWithSecret',
    examples: [
      { ...EXAMPLE, secret: 'dawatch_service_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8' },
    ],
  });

const credentialListSchema = z
  .object({
    credentials: z.array(credentialSchema).describe('Newest first'),
    next_cursor: nextCursorSchema,
  })
  .describe('A page of credentials')
  .meta({ id: 'CredentialPage', examples: [{ credentials: [EXAMPLE], next_cursor: null }] });

function toCredentialBody(
  record: CredentialRecord,
  now: number,
): z.output<typeof credentialSchema> {
  const { id, name, person, role } = record;
  return {
    id,
    name,
    person,
    role,
    state: credentialState(record, now),
    created_at: iso(record.createdAt),
    expires_at: isoOrNull(record.expiresAt),
    last_used_at: isoOrNull(record.lastUsedAt),
    revoked_at: isoOrNull(record.revokedAt),
  };
}

const params = z.strictObject({ id: rowId('a credential', '3') });

const OPERATIONS = operations('credentials', {
  createCredential: {
    summary: 'Create a credential',
    description: `Its secret, a token, is returned only in this response. 409 if ${MAX_CREDENTIALS} credentials are not revoked. Audited.`,
    body: newCredentialSchema,
    response: { 201: credentialWithSecretSchema, ...problemResponses(409, 507) },
  },
  listCredentials: {
    summary: 'List credentials, newest first',
    description:
      'Includes expired and revoked ones. The credentials of the settings, DAWATCH_SERVICE_KEY and DAWATCH_ADMIN_TOKEN, are not listed.',
    querystring: z.strictObject(pageParameters),
    response: { 200: credentialListSchema },
  },
  revokeCredential: {
    summary: 'Revoke a credential',
    description:
      'Its requests are refused from then on, and its event streams and waiting requests end within 15 s. It stays in the list. The person of a credential cannot sign in again. 409 for the last valid credential with the role admin. Does nothing if it is revoked already. Audited.',
    params,
    response: {
      204: z.null().describe('The credential is revoked'),
      ...problemResponses(404, 409, 507),
    },
  },
});

/** Needs the role admin, so that no credential can create one with more rights. */
export function registerCredentials(
  app: TypedServer,
  deps: { ledger: CredentialLedger; clock: Clock; hasConfiguredAdmin: boolean },
): void {
  const { ledger, clock, hasConfiguredAdmin } = deps;
  const store = ledger.credentials;
  const toBody = (record: CredentialRecord) => toCredentialBody(record, clock.now());

  app.post('/v1/credentials', { schema: OPERATIONS.createCredential }, async (request, reply) => {
    const { expires_at, ...fields } = request.body;
    const now = clock.now();
    const expiresAt = expires_at === null ? null : Date.parse(expires_at);
    if (expiresAt !== null && expiresAt <= now)
      return sendInvalidField(reply, 'expires_at', 'must be in the future');
    if (store.isFull()) {
      const detail = `there are ${MAX_CREDENTIALS} credentials that are not revoked: revoke some of them first`;
      return sendProblem(reply, 409, detail);
    }
    const credential = { ...fields, expiresAt };
    const change = { actor: actorOf(request), now, credential };
    const { record, secret } = createCredential(ledger, change);
    return reply.code(201).send({ ...toBody(record), secret });
  });

  const list = { config: { isExpensive: true }, schema: OPERATIONS.listCredentials };
  app.get('/v1/credentials', list, async ({ query }) => {
    const { credentials, nextBefore } = store.page(pageOf(query));
    return { credentials: credentials.map(toBody), next_cursor: nextCursor(nextBefore) };
  });

  app.delete(
    '/v1/credentials/:id',
    { schema: OPERATIONS.revokeCredential },
    async (request, reply) => {
      const { id } = request.params;
      const result = revokeCredential(ledger, {
        actor: actorOf(request),
        now: clock.now(),
        id: Number(id),
        isLastAllowed: hasConfiguredAdmin,
      });
      if (result === 'unknown') return sendProblem(reply, 404, `there is no credential ${id}`);
      if (result !== 'last_admin') return reply.code(204).send(null);
      const detail = `credential ${id} is the last valid one with the role admin: create another one first`;
      return sendProblem(reply, 409, detail);
    },
  );
}

const usersBearerSchema = z
  .enum(['dawatch', 'upstream'])
  .describe(
    "The token that user lookups require: one of dawatch, or the upstream's own, which is forwarded",
  )
  .meta({ id: 'UsersBearer' });

const WHOAMI_EXAMPLE = {
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
  .meta({ id: 'Whoami', examples: [WHOAMI_EXAMPLE] });

const WHOAMI_OPERATIONS = operations('operations', {
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
  const options = { config, schema: WHOAMI_OPERATIONS.getWhoami };
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
